"""The non-linearity of a feed-forward network: chart data and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ui.text.formatting import format_number
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.model.layers import FeedForward

NAMES = {"gelu": "GELU", "gelu_tanh": "GELU (tanh)", "relu": "ReLU", "silu": "SiLU"}
CURVE, NUMBERS = "function", "numbers of the token"
MAX_SHOWN = 150  # points that the chart draws


@dataclass(frozen=True)
class ActivationCurve:
    """A token's numbers (F,) before and after the non-linearity, and its curve."""

    function: str
    token: str
    before: np.ndarray
    after: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @property
    def rows(self) -> pd.DataFrame:
        """Chart data: `series`, `before`, `after`.

        The points are evenly spaced ranks, so they cover the whole range of the numbers.
        """
        order = np.argsort(self.before)
        places = np.linspace(0, len(order) - 1, min(len(order), MAX_SHOWN))
        shown = order[places.round().astype(int)]
        curve = pd.DataFrame({"series": CURVE, "before": self.x, "after": self.y})
        numbers = {"series": NUMBERS, "before": self.before[shown], "after": self.after[shown]}
        return pd.concat([curve, pd.DataFrame(numbers)], ignore_index=True)

    @property
    def summary(self) -> str:
        """Describe what the function does to numbers below zero."""
        n_below, least = int((self.before < 0).sum()), float(self.after.min())
        function = NAMES[self.function]
        rest = (
            f"{function} sets all of them to zero"
            if least == 0
            else f"After {function} none of them is below "
            f"{format_number(np.floor(least * 100) / 100, '.2f')}"
        )
        return (
            f"Of the {len(self.before):,} numbers of “{isolated(self.token)}”, {n_below:,} are "
            f"below zero. The lowest is {format_number(self.before.min(), '.2f')}. {rest}."
        )


def activation_curve(name: str, mlp: FeedForward, x: Tensor, token: str) -> ActivationCurve:
    """Apply the non-linearity `name` of the network to a token x (C,)."""
    from pages.learn.block.experiment import apply_activation, curve

    numbers = apply_activation(name, mlp, x)
    before, after = numbers.before.float().cpu(), numbers.after.float().cpu()
    # the curve always shows both sides of zero
    points, values = curve(name, min(-3.0, float(before.min())), max(3.0, float(before.max())))
    return ActivationCurve(
        name, token, before.numpy(), after.numpy(), points.numpy(), values.numpy()
    )
