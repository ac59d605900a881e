"""The numbers of the page "Masking and dropout", taken from the core's tensors."""

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
from ui.text.number_text import written
from ui.widgets.questions import Question

if TYPE_CHECKING:
    from pages.learn.masking.experiment.dropout_draws import Dropped
    from pages.learn.masking.experiment.mask_orders import MaskWays

MAX_DRAWS = 10_000
# 1, 2, 5, 10 ... 10,000: evenly spread on a logarithmic axis
DRAWS = tuple(n * 10**power for power in range(4) for n in (1, 2, 5)) + (MAX_DRAWS,)

LARGEST, MEAN, EXPECTED = "largest deviation", "mean deviation", "mean expected, ∝ 1/√n"


@dataclass(frozen=True)
class Scores:
    """Unmasked scores (T, T) of one head, its tokens, and the scale it multiplies them with."""

    labels: tuple[str, ...]
    values: np.ndarray
    scale: float

    def part(self, first: int, most: int) -> Scores:
        """The scores between at most `most` of its tokens, from `first` on."""
        chosen = slice(first, first + most)
        return Scores(self.labels[chosen], self.values[chosen, chosen], self.scale)


def example(name: str) -> Scores:
    """The dot products of a lecture's rows, "journey" or "boy", not scaled, as the article masks.

    They are what `simple_self_attention` calls its scores.
    """
    from attention_core import lecture_inputs, simple_self_attention

    chosen = {"journey": lecture_inputs.JOURNEY, "boy": lecture_inputs.BOY}[name]
    scores = simple_self_attention(chosen.embeddings)[0]
    return Scores(chosen.tokens, scores.numpy(), 1.0)


def of_head(model: str, layer: int, head: int, text: str) -> Scores:
    """The scores q . k of one head of a model, before any mask; from the run that all heads share.

    Raises: OverLimit for more than `MAX_LESSON_TOKENS` tokens, ValueError for none, and what
    loading a model raises.
    """
    run = runs.run(model, text, MAX_LESSON_TOKENS, "this page")
    return Scores(run.tokens.labels, run.head(layer, head).scores.numpy(), run.scale)


def ways(scores: Scores, fill: float = 0.0) -> MaskWays:
    """The scores under the causal mask, in every way; see `mask_orders.mask_ways`."""
    import torch

    from attention_core import causal_mask
    from pages.learn.masking.experiment.mask_orders import mask_ways

    values = torch.tensor(scores.values)
    return mask_ways(values, causal_mask(*values.shape), scale=scores.scale, fill=fill)


def growing(scores: Scores, n_tokens: int) -> Panel:
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
    """A panel of queries by keys; keys by their positions, so that two panels fit a line."""
    options.setdefault("quantity", "weights")
    options.setdefault("columns", [str(position) for position in range(len(labels))])
    return Panel(title, values.numpy(), ("query", "key"), labels, **options)


def positions(so_far: int) -> str:
    """In words, what the last of so many tokens may see, and what becomes of the rows before."""
    if so_far == 1:
        return "only itself, at position 0"
    return f"positions 0 to {so_far - 1}. Earlier rows keep their numbers"


def sight(labels: Sequence[str]) -> pd.DataFrame:
    """What each position may see, in words, from the mask itself."""
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


def sums(masked: MaskWays, labels: Sequence[str]) -> pd.DataFrame:
    """A table: each row's sum under three ways of masking, and where renormalised and −∞ differ."""
    difference = (masked.renormalised - masked.before).abs().max(dim=-1).values
    return pd.DataFrame(
        {
            "query": list(labels),
            "sum after zeroing": masked.zeroed.sum(dim=-1).numpy(),
            "renormalised": masked.renormalised.sum(dim=-1).numpy(),
            "−∞ before": masked.before.sum(dim=-1).numpy(),
            "largest difference": [written(value, ".1e") for value in difference.tolist()],
        }
    )


def leaks(masked: MaskWays, labels: Sequence[str]) -> pd.DataFrame:
    """A table: how much weight each query gives to tokens that come after it."""
    ahead = range(len(labels) - 1, -1, -1)
    return pd.DataFrame(
        {
            "query": list(labels),
            "keys ahead": list(ahead),
            "leaked": masked.leaked.double().numpy(),
        }
    )


def draw(weights: np.ndarray | None, p: float, seed: int) -> Dropped:
    """One dropout of weights, or, without any, of the article's matrix from the same seed."""
    import torch

    from pages.learn.masking.experiment.dropout_draws import drop_seeded, lecture_draw

    if weights is None:
        return lecture_draw(p, seed)
    return drop_seeded(torch.tensor(weights), p, seed)


def average(weights: np.ndarray, p: float, seed: int) -> pd.DataFrame:
    """How far the average of n draws is from the undropped weights, for each n of `DRAWS`."""
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
    """Three questions about the lectures' numbers, answered by their tensors."""
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
    unchanged, shrink = "nothing: not a bit", "they shrink to make room"
    return [
        Question(
            ask=f"“Boy” is the first of {n} tokens, and may see {n_visible}. With 0.0 as the "
            "mask, how much of its weight goes to the future?",
            right=f"{first:.0%}",
            wrong=tuple(
                dict.fromkeys(
                    guess for guess in ("0%", f"{1 / n:.0%}", "50%") if guess != f"{first:.0%}"
                )
            ),
            because=f"{n - n_visible} forbidden keys get exp(0) = 1 each; the allowed one gets "
            f"exp({nine.values[0, 0]:.4f}). Leaked: {first:.4f}.",
        ),
        Question(
            ask="A ninth token comes after eight others. What happens to the first eight rows of "
            "causal weights?",
            right=unchanged if change == 0.0 else shrink,
            wrong=(shrink if change == 0.0 else unchanged, "only the last one changes"),
            because=f"Largest change with the mask: {change:.4f}; without it: "
            f"{unmasked_change:.4f}.",
        ),
        Question(
            ask=f"Dropout with p = 0.5 keeps a cell of {before:.4f}. What does it hold then?",
            right=f"{after:.4f}",
            wrong=tuple(
                guess
                for guess in (f"{before:.4f}", f"{before / 2:.4f}", "1.0000")
                if guess != f"{after:.4f}"
            ),
            because=f"{before:.4f} / (1 − 0.5) = {after:.4f}: kept cells make up for the dropped.",
        ),
    ]


def _masked(scores: Any, causal: bool) -> Any:
    from attention_core import causal_mask, mask_scores

    return mask_scores(scores, causal_mask(*scores.shape)) if causal else scores
