"""The non-linearity of a layer's feed-forward network, as a table for its chart and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ui.text.isolated import isolated
from ui.text.number_text import written

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.model.layers import FeedForward

NAMES = {"gelu": "GELU", "gelu_tanh": "GELU (tanh)", "relu": "ReLU", "silu": "SiLU"}
CURVE, NUMBERS = "the function", "numbers of the token"
MOST_SHOWN = 150  # points that the chart draws


@dataclass(frozen=True)
class Bend:
    """A token's numbers before the non-linearity and after it, both (F,), and its curve (N,)."""

    function: str
    token: str
    before: np.ndarray
    after: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @property
    def rows(self) -> pd.DataFrame:
        """Rows of the chart: `series`, `before`, `after`. Of the numbers every n-th by their size.

        So the points show the whole range, however many numbers there are.
        """
        order = np.argsort(self.before)
        places = np.linspace(0, len(order) - 1, min(len(order), MOST_SHOWN))
        shown = order[places.round().astype(int)]
        curve = pd.DataFrame({"series": CURVE, "before": self.x, "after": self.y})
        numbers = {"series": NUMBERS, "before": self.before[shown], "after": self.after[shown]}
        return pd.concat([curve, pd.DataFrame(numbers)], ignore_index=True)

    @property
    def summary(self) -> str:
        """What the function does to the numbers that are below zero."""
        n_below, least = int((self.before < 0).sum()), float(self.after.min())
        rest = "zero" if least == 0 else f"at least {written(np.floor(least * 100) / 100, '.2f')}"
        return (
            f"{NAMES[self.function]}: of the {len(self.before):,} numbers of "
            f"“{isolated(self.token)}”, {n_below:,} are below zero, down to "
            f"{written(self.before.min(), '.2f')}. Behind the function each of them is {rest}."
        )


def bend(name: str, mlp: FeedForward, x: Tensor, token: str) -> Bend:
    """What the non-linearity `name` of the network does to the numbers of a token, x (C,)."""
    from pages.learn.block.experiment import curve, non_linearity

    numbers = non_linearity(name, mlp, x)
    before, after = numbers.before.float().cpu(), numbers.after.float().cpu()
    # a curve that shows both sides of zero, whatever the token's numbers are
    points, values = curve(name, min(-3.0, float(before.min())), max(3.0, float(before.max())))
    return Bend(name, token, before.numpy(), after.numpy(), points.numpy(), values.numpy())
