"""A row of logits under three softmaxes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ui.text.formatting import format_number

# The article's two examples.
ARTICLE = {"20, 21.5, 22": "20 21.5 22", "20, 21.5, 26": "20 21.5 26"}
MAX_LOGITS, LARGEST_LOGIT = 16, 1e6
TEMPERATURES = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]


@dataclass(frozen=True)
class Softmaxes:
    """Logits and weights under three softmaxes, (n,); no `by_sum` for a sum of 0."""

    logits: np.ndarray
    temperature: float
    plain: np.ndarray
    tempered: np.ndarray
    by_sum: np.ndarray | None

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The weights of each softmax by its name on the page."""
        by_name = {"as they are": self.plain, f"÷ {self.temperature:g}": self.tempered}
        return by_name if self.by_sum is None else by_name | {"÷ their sum": self.by_sum}

    @property
    def table(self) -> pd.DataFrame:
        """One row per logit."""
        return pd.DataFrame({"logit": self.logits, **self.columns})

    @property
    def rows(self) -> pd.DataFrame:
        """Chart data: `logit` with its position, `scores` (the softmax), `weight`."""
        return pd.DataFrame(
            [
                {"logit": f"{place}: {logit:g}", "scores": name, "weight": float(weights[place])}
                for name, weights in self.columns.items()
                for place, logit in enumerate(self.logits)
            ]
        )


def parse(text: str) -> list[float]:
    """Parse logits separated by spaces, commas or semicolons.

    Raises: ValueError for fewer than 2 or more than `MAX_LOGITS` logits, or an invalid number.
    """
    words = [word for word in re.split(r"[\s,;]+", text.strip(" \t\n,;[]")) if word]
    numbers = [_number(word) for word in words[:MAX_LOGITS]]
    if len(words) < 2 or len(words) > MAX_LOGITS:
        raise ValueError(f"Type 2 to {MAX_LOGITS} numbers, like “20 21.5 22”, not {len(words)}.")
    return numbers


def _number(word: str) -> float:
    try:
        number = float(word.replace("−", "-"))
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"“{word[:20]}” is not a number. Type numbers like “20 21.5 22”.")
    if abs(number) > LARGEST_LOGIT:
        raise ValueError(
            f"“{word[:20]}” is out of range. Use numbers from −{LARGEST_LOGIT:,.0f} to "
            f"{LARGEST_LOGIT:,.0f}."
        )
    return number


def softmaxes(logits: list[float], temperature: float) -> Softmaxes:
    """Softmax of the logits, of logits / temperature, and of logits / their sum."""
    import torch

    from pages.learn.scaling.experiment import (
        softmax_at,
        softmax_of_shares,
        sums_to_zero,
    )

    values = torch.tensor(logits)
    divisible = not bool(sums_to_zero(values))
    return Softmaxes(
        logits=values.numpy(),
        temperature=temperature,
        plain=softmax_at(values, 1.0).numpy(),
        tempered=softmax_at(values, temperature).numpy(),
        by_sum=softmax_of_shares(values).numpy() if divisible else None,
    )


def row_numbers(result: Softmaxes) -> pd.DataFrame:
    """One row per softmax: entropy, largest weight and gradient."""
    import torch

    from pages.learn.scaling.experiment import (
        entropy,
        jacobian_norm,
        uniform_jacobian_norm,
    )

    rows = []
    for name, values in result.columns.items():
        weights = torch.from_numpy(values)
        left = float(jacobian_norm(weights)) / uniform_jacobian_norm(len(values))
        nats = max(0.0, float(entropy(weights)))  # rounding can make it slightly negative
        rows.append(
            {
                "": name,
                "largest weight": f"{values.max():.4f}",
                f"entropy (at most {math.log(len(values)):.3f})": f"{nats:.4f}",
                "gradient, uniform = 1": format_number(left, ".3g"),
            }
        )
    return pd.DataFrame(rows)
