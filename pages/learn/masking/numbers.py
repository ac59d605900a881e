"""Data for the page "Masking and dropout"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from serving import runs
from serving.cache import cached
from serving.limits import MAX_LESSON_TOKENS
from ui.canvas.tensors import Panel
from ui.text.formatting import format_number
from ui.widgets.questions import Question

if TYPE_CHECKING:
    from pages.learn.masking.experiment.dropout_draws import DropoutDraw
    from pages.learn.masking.experiment.mask_orders import MaskResults

MAX_DRAWS = 10_000
# 1, 2, 5, 10 ... 10,000: evenly spread on a logarithmic axis
DRAWS = tuple(n * 10**power for power in range(4) for n in (1, 2, 5)) + (MAX_DRAWS,)

LARGEST, MEAN, EXPECTED = "largest deviation", "mean deviation", "mean expected, ∝ 1/√n"


@dataclass(frozen=True)
class Scores:
    """Unmasked scores (T, T) of one head, its tokens, and its scale."""

    labels: tuple[str, ...]
    values: np.ndarray
    scale: float

    def part(self, first: int, most: int) -> Scores:
        """The scores of at most `most` tokens, starting at `first`."""
        chosen = slice(first, first + most)
        return Scores(self.labels[chosen], self.values[chosen, chosen], self.scale)


def example(name: str) -> Scores:
    """Scores of an example from the lectures, "journey" or "boy", without scaling.

    They come from `simple_self_attention`. The first six rows of both examples are the same.
    """
    from attention_core import lecture_inputs, simple_self_attention

    inputs = {"journey": lecture_inputs.JOURNEY, "boy": lecture_inputs.BOY}[name]
    scores = simple_self_attention(inputs.embeddings)[0]
    return Scores(inputs.tokens, scores.numpy(), 1.0)


def head_scores(model: str, layer: int, head: int, text: str) -> Scores:
    """Scores q . k of one head of a model, before masking.

    Raises: OverLimit for more than `MAX_LESSON_TOKENS` tokens, ValueError for a text without
    tokens. Other errors: as in loading a model.
    """
    run = runs.run(model, text, MAX_LESSON_TOKENS, "this page")
    return Scores(run.tokens.labels, run.head(layer, head).scores.numpy(), run.scale)


def ways(scores: Scores, fill: float = 0.0) -> MaskResults:
    """Apply the causal mask in every way; see `mask_orders.compare_masks`."""
    import torch

    from attention_core import causal_mask
    from pages.learn.masking.experiment.mask_orders import compare_masks

    values = torch.tensor(scores.values)
    return compare_masks(values, causal_mask(*values.shape), scale=scores.scale, fill=fill)


def growing_panel(scores: Scores, n_tokens: int) -> Panel:
    """The masked scores of the first tokens."""
    part = Scores(scores.labels[:n_tokens], scores.values[:n_tokens, :n_tokens], scores.scale)
    newest = tuple((n_tokens - 1, column) for column in range(n_tokens))
    masked = ways(part).masked_scores
    return square(
        "scores with the mask",
        masked,
        part.labels,
        columns=part.labels,
        mark=newest,
        quantity="scores",
    )


def square(title: str, values: Any, labels: Sequence[str], **options: Any) -> Panel:
    """A query-by-key panel; columns show positions so that two panels fit in a row."""
    options.setdefault("quantity", "weights")
    options.setdefault("columns", [str(position) for position in range(len(labels))])
    return Panel(title, values.numpy(), ("query", "key"), labels, **options)


def positions(so_far: int) -> str:
    """Describe what the last of `so_far` tokens may see."""
    if so_far == 1:
        return "only itself, at position 0"
    return f"positions 0 to {so_far - 1}. Earlier rows don't change"


def visibility_table(labels: Sequence[str]) -> pd.DataFrame:
    """The tokens that each position may see, according to the mask."""
    from attention_core import causal_mask

    mask = causal_mask(len(labels), len(labels)).numpy()
    return pd.DataFrame(
        {
            "position": range(len(labels)),
            "token": list(labels),
            "may see": [
                " ".join(label for label, visible in zip(labels, row, strict=True) if visible)
                for row in mask
            ],
        }
    )


def sums(masked: MaskResults, labels: Sequence[str]) -> pd.DataFrame:
    """Row sums for three ways of masking, and the difference between two of them."""
    difference = (masked.renormalised - masked.before).abs().max(dim=-1).values
    return pd.DataFrame(
        {
            "query": list(labels),
            "sum after zeroing": masked.zeroed.sum(dim=-1).numpy(),
            "renormalized": masked.renormalised.sum(dim=-1).numpy(),
            "−∞ before": masked.before.sum(dim=-1).numpy(),
            "largest difference": [format_number(value, ".1e") for value in difference.tolist()],
        }
    )


def leaks(masked: MaskResults, labels: Sequence[str]) -> pd.DataFrame:
    """The weight that each query gives to later tokens."""
    ahead = range(len(labels) - 1, -1, -1)
    return pd.DataFrame(
        {
            "query": list(labels),
            "keys ahead": list(ahead),
            "leaked": masked.leaked.double().numpy(),
        }
    )


def draw(weights: np.ndarray | None, p: float, seed: int) -> DropoutDraw:
    """Apply dropout once to the weights, or to a random matrix if None."""
    import torch

    from pages.learn.masking.experiment.dropout_draws import apply_seeded_dropout, lecture_draw

    if weights is None:
        return lecture_draw(p, seed)
    return apply_seeded_dropout(torch.tensor(weights), p, seed)


def average(weights: np.ndarray, p: float, seed: int) -> pd.DataFrame:
    """Deviation of the average of n draws from the weights, for each n in `DRAWS`."""
    return _average(weights.astype("f4").tobytes(), p, seed)


@cached(key=lambda weights, p, seed: (weights, p, seed))
def _average(weights: bytes, p: float, seed: int) -> pd.DataFrame:
    import torch

    from pages.learn.masking.experiment.dropout_draws import deviations

    averages = deviations(torch.frombuffer(bytearray(weights), dtype=torch.float32), p, seed, DRAWS)
    return pd.DataFrame(
        {
            "draws": averages.draws,
            LARGEST: averages.largest.numpy(),
            MEAN: averages.mean.numpy(),
            EXPECTED: averages.expected.numpy(),
        }
    )


def questions() -> list[Question]:
    """Three questions about the lectures' numbers, answered from their tensors."""
    import torch

    from attention_core import attention_weights, causal_mask

    nine = example("boy")
    first = float(ways(nine).leaked[0])
    scores = torch.tensor(nine.values)
    fewer = scores[:-1, :-1]
    change, unmasked_change = (
        float(
            (
                attention_weights(_masked(scores, mask))[:-1, :-1]
                - attention_weights(_masked(fewer, mask))
            )
            .abs()
            .max()
        )
        for mask in (True, False)
    )
    dropped = draw(None, 0.5, 123)
    before, after = float(dropped.before[0, 0]), float(dropped.after[0, 0])
    n = len(nine.labels)
    n_visible = int(causal_mask(n, n)[0].sum())
    unchanged, shrink = "Nothing at all", "They get smaller"
    return [
        Question(
            prompt=f"“Boy” is the first of {n} tokens and may see only {n_visible} of them. If the "
            "mask writes 0.0 instead of −∞, how much of its weight goes to the future?",
            right=f"{first:.0%}",
            wrong=tuple(
                dict.fromkeys(
                    guess for guess in ("0%", f"{1 / n:.0%}", "50%") if guess != f"{first:.0%}"
                )
            ),
            explanation=f"Each of the {n - n_visible} forbidden keys gets exp(0) = 1, and the "
            "allowed "
            f"one gets exp({nine.values[0, 0]:.4f}). So {first:.4f} of the weight leaks.",
        ),
        Question(
            prompt="A ninth token is added to eight others. What happens to the first eight rows "
            "of "
            "the causal weights?",
            right=unchanged if change == 0.0 else shrink,
            wrong=(shrink if change == 0.0 else unchanged, "Only the eighth row changes"),
            explanation=f"With the mask the largest change is {change:.4f}. Without it, the "
            "largest "
            f"change is {unmasked_change:.4f}.",
        ),
        Question(
            prompt=f"Dropout with p = 0.5 keeps a cell with value {before:.4f}. What's its new "
            "value?",
            right=f"{after:.4f}",
            wrong=tuple(
                guess
                for guess in (f"{before:.4f}", f"{before / 2:.4f}", "1.0000")
                if guess != f"{after:.4f}"
            ),
            explanation=f"{before:.4f} / (1 − 0.5) = {after:.4f}. The kept cells make up for the "
            "dropped ones.",
        ),
    ]


def _masked(scores: Any, causal: bool) -> Any:
    from attention_core import causal_mask, mask_scores

    return mask_scores(scores, causal_mask(*scores.shape)) if causal else scores
