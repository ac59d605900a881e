"""The same tokens in two orders: what attention makes of them without positions and with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from serving import compute, models
from serving.cache import cached
from serving.limits import MAX_LESSON_TOKENS, MAX_SMALL_TOKENS, InvalidInput
from serving.prompts import prepare
from ui.canvas.tensors import Panel

if TYPE_CHECKING:
    from torch import Tensor

REVERSED, ROTATED, SHUFFLED = "reversed", "rotated", "shuffled"
ORDERS = (REVERSED, ROTATED, SHUFFLED)
WITHOUT, WITH = "without positions", "with positions"
NUMBERS = 8  # of each output that are drawn


@dataclass(frozen=True)
class TwoOrders:
    """The outputs of a layer's attention for the tokens as they stand and in a new order.

    By `WITHOUT` and `WITH`: the two panels, the largest change of a number of a token's output, and
    the largest number, to compare it with.
    """

    panels: dict[str, tuple[Panel, Panel]]
    changes: dict[str, float]
    largest: dict[str, float]


def n_tokens(name: str, text: str) -> int:
    """How many tokens the model makes of the text.

    Raises: OverLimit for too many tokens, InvalidInput for fewer than two, and whatever loading a
    model raises.
    """
    tokens = prepare(models.get(name), text, MAX_LESSON_TOKENS, "this page").tokens
    if len(tokens) - sum(tokens.special) < 2:
        raise InvalidInput(
            "These are fewer than two tokens, which have no other order: type more words."
        )
    return len(tokens)


def _key(name: str, text: str, first: int, how: str) -> tuple[object, ...]:
    return models.key(name), text, first, how


@cached(key=_key)
def two_orders(name: str, text: str, first: int, how: str) -> TwoOrders:
    """The first layer's attention on at most `MAX_SMALL_TOKENS` of the tokens, from `first` on.

    A token that the tokenizer added ([CLS], [SEP]) keeps its place. Errors as of `n_tokens`.
    """
    import torch

    from attention_core.analysis.token_order import reordered
    from pages.learn.position.experiment.order import in_two_orders

    model = models.get(name)
    tokens = prepare(model, text, MAX_LESSON_TOKENS, "this page").tokens
    part = slice(first, first + MAX_SMALL_TOKENS)
    labels, special = tokens.labels[part], tokens.special[part]
    movable = [place for place, fixed in enumerate(special) if not fixed]
    order = list(range(len(labels)))
    for place, moved in zip(movable, reordered(len(movable), how), strict=True):
        order[place] = movable[moved]
    ids = torch.tensor(tokens.ids[part], device=model.device)
    panels, changes, largest = {}, {}, {}
    with compute.slot(), torch.inference_mode():
        for how_given, given in ((WITHOUT, False), (WITH, True)):
            found = in_two_orders(model.core, ids, order, positions=given)
            as_typed = torch.empty_like(found.function_first)
            as_typed[order] = found.function_first  # back to the order of the text
            panels[how_given] = (
                _panel("in your order", as_typed, labels, range(len(labels))),
                _panel("in the new order", found.order_first, labels, order),
            )
            changes[how_given], largest[how_given] = found.difference, found.largest
    return TwoOrders(panels, changes, largest)


def _panel(name: str, outputs: Tensor, labels: Sequence[str], order: Sequence[int]) -> Panel:
    """The first numbers of outputs (T, C), a column a token.

    A number lights up in both orders.
    """
    values = outputs[:, :NUMBERS].float().cpu().numpy().T  # (numbers, T)
    cells = np.arange(len(values), dtype="<i4")[:, None] + np.array(order, "<i4") * NUMBERS
    columns = [labels[place] for place in order]
    whole = tuple(reversed(outputs.shape))
    return Panel(name, values, ("width", "token"), columns=columns, cells=cells, whole=whole)
