"""Attention on the same tokens in two orders, with and without positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from serving import compute, models
from serving.cache import cached
from serving.limits import MAX_LESSON_TOKENS, MAX_SMALL_TOKENS, InvalidInput
from serving.prompts import prepare_prompt
from ui.canvas.tensors import Panel

if TYPE_CHECKING:
    from torch import Tensor

REVERSED, ROTATED, SHUFFLED = "reversed", "rotated", "shuffled"
ORDERS = (REVERSED, ROTATED, SHUFFLED)
WITHOUT, WITH = "without positions", "with positions"
NUMBERS = 8  # numbers drawn per output vector


@dataclass(frozen=True)
class TwoOrders:
    """Attention outputs for the tokens in the original order and in a new one.

    Keys are `WITHOUT` and `WITH`. panels: both outputs. changes: the largest change in a token's
    output. largest: the largest number, for comparison.
    """

    panels: dict[str, tuple[Panel, Panel]]
    changes: dict[str, float]
    largest: dict[str, float]


def n_tokens(name: str, text: str) -> int:
    """Count the model's tokens of a text.

    Raises: OverLimit for too many tokens, InvalidInput for fewer than two. Other errors: as in
    loading a model.
    """
    tokens = prepare_prompt(models.get(name), text, MAX_LESSON_TOKENS, "this page").tokens
    if len(tokens) - sum(tokens.special) < 2:
        raise InvalidInput(
            "This text has fewer than two tokens, so it can't be reordered. Please type more words."
        )
    return len(tokens)


def _key(name: str, text: str, first: int, kind: str) -> tuple[object, ...]:
    return models.key(name), text, first, kind


@cached(key=_key)
def two_orders(name: str, text: str, first: int, kind: str) -> TwoOrders:
    """Run the first layer's attention on a window of the text in two orders.

    The window has up to `MAX_SMALL_TOKENS` tokens, starting at `first`.

    Tokens that the tokenizer added ([CLS], [SEP]) keep their positions. Errors: as in `n_tokens`.
    """
    import torch

    from attention_core.analysis.permutation import permutation
    from pages.learn.position.experiment.order import compare_orders

    model = models.get(name)
    tokens = prepare_prompt(model, text, MAX_LESSON_TOKENS, "this page").tokens
    part = slice(first, first + MAX_SMALL_TOKENS)
    labels, special = tokens.labels[part], tokens.special[part]
    movable = [place for place, fixed in enumerate(special) if not fixed]
    order = list(range(len(labels)))
    for place, change in zip(movable, permutation(len(movable), kind), strict=True):
        order[place] = movable[change]
    ids = torch.tensor(tokens.ids[part], device=model.device)
    panels, changes, largest = {}, {}, {}
    with compute.slot(), torch.inference_mode():
        for how_given, inputs in ((WITHOUT, False), (WITH, True)):
            result = compare_orders(model.core, ids, order, positions=inputs)
            as_typed = torch.empty_like(result.output_permuted)
            as_typed[order] = result.output_permuted  # back to the original order
            panels[how_given] = (
                _panel("original order", as_typed, labels, range(len(labels))),
                _panel("new order", result.input_permuted, labels, order),
            )
            changes[how_given], largest[how_given] = result.difference, result.largest
    return TwoOrders(panels, changes, largest)


def _panel(name: str, outputs: Tensor, labels: Sequence[str], order: Sequence[int]) -> Panel:
    """The first numbers of outputs (T, C), with one column per token.

    Cells have identities, so the page can highlight the same number in both panels.
    """
    values = outputs[:, :NUMBERS].float().cpu().numpy().T  # (numbers, T)
    cells = np.arange(len(values), dtype="<i4")[:, None] + np.array(order, "<i4") * NUMBERS
    columns = [labels[place] for place in order]
    whole = tuple(reversed(outputs.shape))
    return Panel(name, values, ("width", "token"), columns=columns, cells=cells, whole=whole)
