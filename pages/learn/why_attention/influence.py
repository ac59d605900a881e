"""The influence of each word on the last vector of a GRU and of attention, by gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from serving.cache import cached
from serving.limits import MAX_WORDS, OverLimit, check_text

if TYPE_CHECKING:
    from torch import Tensor

GRU, ATTENTION = "GRU, last state", "attention, last context"
PLAIN, TRAINABLE = "dot products alone (no weights)", "SelfAttentionV2 (random weights)"
LAYERS = [TRAINABLE, PLAIN]

WIDTHS = [2, 4, 8, 16, 32]
STATES = [2, 4, 8, 16, 32, 64]
MAX_HOLD, MAX_SEED = 6.0, 999
LENGTHS = [1, 2, 4, 8, 16, 32, 64]


@dataclass(frozen=True)
class InfluenceSetup:
    """The page's settings; width: numbers per token (d), state: numbers in a state or context."""

    words: tuple[str, ...]
    uses_notebook: bool
    width: int
    state: int
    update_bias: float
    layer: str
    seed: int


@dataclass(frozen=True)
class Reach:
    """The influence of each token on the last vectors; every array is (T,).

    gru, attention: the norm of the gradient. gru_share, attention_share: divided by the mean.
    weights: the last token's attention weights. numbers: how many numbers the sentence and the
    state have.
    """

    words: tuple[str, ...]
    gru: np.ndarray
    attention: np.ndarray
    gru_share: np.ndarray
    attention_share: np.ndarray
    weights: np.ndarray
    numbers: tuple[int, int]

    @property
    def table(self) -> pd.DataFrame:
        """One row per token."""
        return pd.DataFrame(
            {
                "position": np.arange(len(self.words)),
                "word": self.words,
                "GRU: gradient": self.gru,
                "GRU: × equal share": self.gru_share,
                "attention: gradient": self.attention,
                "attention: × equal share": self.attention_share,
                "attention: weight": self.weights,
            }
        )

    @property
    def shares(self) -> pd.DataFrame:
        """One row per token and network: `position`, `word`, `network`, and its `share`."""
        tables = [
            pd.DataFrame({"position": range(len(self.words)), "word": self.words, "network": name})
            for name in (GRU, ATTENTION)
        ]
        shares = np.concatenate([self.gru_share, self.attention_share]).astype(float)
        return pd.concat(tables, ignore_index=True).assign(share=shares)


def split_words(text: str) -> tuple[str, ...]:
    """Split a text at spaces. Raises: OverLimit for too many words, ValueError for none."""
    check_text(text)
    words = tuple(text.split())
    if not words:
        raise ValueError("The text is empty. Type at least one word.")
    if len(words) > MAX_WORDS:
        raise OverLimit(
            f"The text has {len(words)} words, but the limit is {MAX_WORDS}. Shorten it: your text "
            "is still in the box."
        )
    return words


def setting(
    text: str, *, notebook: bool, width: int, state: int, hold: float, layer: str, seed: int
) -> InfluenceSetup:
    """Collect the settings; the notebook's sentence has fixed vectors of three numbers.

    Raises: the errors of `split_words`.
    """
    if notebook:
        from attention_core.lecture_inputs import JOURNEY

        width = JOURNEY.embeddings.shape[1]
        return InfluenceSetup(JOURNEY.tokens, True, width, state, hold, layer, seed)
    return InfluenceSetup(split_words(text), False, width, state, hold, layer, seed)


@cached(key=lambda setting: setting)
def reach(setting: InfluenceSetup) -> Reach:
    """Compute the gradients of the last state and the last context for every token."""
    from pages.learn.why_attention.experiment import (
        against_equal_share,
        influence,
        last_context,
    )

    x = _vectors(setting)
    (gru, state), (attention, size) = _networks(setting)
    from_gru, from_attention = influence(gru, x, state), influence(attention, x, size)
    return Reach(
        words=setting.words,
        gru=from_gru.numpy(),
        attention=from_attention.numpy(),
        gru_share=against_equal_share(from_gru).numpy(),
        attention_share=against_equal_share(from_attention).numpy(),
        weights=last_context(x[None], _layer(setting))[1][0].numpy(),
        numbers=(x.numel(), gru(x[None]).numel()),
    )


@cached(key=lambda setting: setting)
def growth(setting: InfluenceSetup) -> pd.DataFrame:
    """Token 0's share of the influence as the repeated sentence grows to 64 tokens."""
    from pages.learn.why_attention.experiment import first_token_shares

    x = _vectors(setting)
    x = x.repeat(-(-LENGTHS[-1] // len(x)), 1)[: LENGTHS[-1]]
    networks = _networks(setting)
    return pd.DataFrame(
        {
            "tokens": LENGTHS,
            **{
                name: first_token_shares(last, x, size, LENGTHS).numpy()
                for name, (last, size) in zip((GRU, ATTENTION), networks, strict=True)
            },
        }
    )


def _vectors(setting: InfluenceSetup) -> Tensor:
    """The word vectors: (T, d), float64."""
    from attention_core.lecture_inputs import JOURNEY
    from pages.learn.why_attention.experiment import word_vectors

    if setting.uses_notebook:
        return JOURNEY.embeddings.double()
    return word_vectors(setting.words, setting.width, setting.seed).double()


def _layer(setting: InfluenceSetup) -> Any:
    from pages.learn.why_attention.experiment import attention_layer

    if setting.layer == PLAIN:
        return None
    return attention_layer(setting.width, setting.state, setting.seed).double()


def _networks(setting: InfluenceSetup) -> list[tuple[Callable[[Tensor], Tensor], int]]:
    """The GRU and attention as functions (n, T, d) -> (n, size), each with its size."""
    from pages.learn.why_attention.experiment import encoder, last_context, last_state

    gru = encoder(setting.width, setting.state, setting.seed, hold=setting.update_bias).double()
    layer = _layer(setting)

    def context(copies: Tensor) -> Tensor:
        return last_context(copies, layer)[0]

    size = setting.width if layer is None else setting.state
    return [(partial(last_state, gru), setting.state), (context, size)]
