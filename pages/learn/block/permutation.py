"""How reordering the tokens affects the parts of a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.block.original_layers import (
    DECODER_2017,
    ENCODER_2017,
    WIDTH_2017,
    key,
    split_words,
    unique_labels,
    untrained_layer,
)
from pages.learn.block.stream import run
from pages.learn.block.windows import COLUMNS_SHOWN, TOKENS_SHOWN
from serving import compute, models
from serving.cache import cached
from ui.canvas.tensors import Panel
from ui.text.formatting import difference

if TYPE_CHECKING:
    from torch import Tensor

ORDERS = ("reversed", "rotated", "shuffled")
MAX_SEED = 50


@dataclass(frozen=True)
class PermutedOutputs:
    """Effect of a new token order on the parts of a layer.

    table: one row per part. windows: for each part f, reordered f(x) and f(reordered x).
    """

    labels: tuple[str, ...]
    order: tuple[int, ...]
    table: pd.DataFrame
    windows: dict[str, tuple[Panel, Panel]]
    differences: dict[str, float]


def _key(choice: str, text: str, kind: str, seed: int) -> tuple[object, ...]:
    return key(choice), text, kind, seed if kind == "shuffled" else 0


@cached(key=_key)
def permuted_outputs(choice: str, text: str, kind: str, seed: int) -> PermutedOutputs:
    """Compare the parts of a 2017 layer, or of a model's first layer, in two orders.

    Errors: as in `split_words` and `run`.
    """
    import torch

    from attention_core.analysis import permutation
    from attention_core.model import original_transformer as layers_of_2017

    if choice in (ENCODER_2017, DECODER_2017):
        words = split_words(text)
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
        rotation = core.new_pass(core.embed(tokens[None], places).layer_input, places).rotation

        def embed(x: Tensor, positions: bool) -> Tensor:
            return core.embed(x, places if positions else None).layer_input

    order = permutation.permutation(len(labels), kind, seed)
    with compute.slot(), torch.inference_mode():
        exchanges = permutation.check_layer_equivariance(layer, tokens, order, embed, rotation)
    rows = [labels[i] for i in order]
    return PermutedOutputs(
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
                _rows("part first, then reordering", e.output_permuted, rows),
                _rows("reordering first, then part", e.input_permuted, rows),
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
