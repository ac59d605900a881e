"""The date translator's result for the visitor's text, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import compute
from serving.cache import cached
from ui.text.formatting import percent

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.attend import AttentionRecord
    from pages.learn.two_networks.experiment.model import Translator

FIRST = "3rd of may 1998"  # the default text
MEAN = "the mean of all"  # name of the mean over a layer's heads
N_LAYERS, N_HEADS = 2, 4
N_ANSWER_SYMBOLS = 10  # number of symbols in an answer
N_HELD_OUT = 40  # dates for comparing all states with a single vector


@dataclass(frozen=True)
class DateTranslation:
    """A text of S symbols and the answer of T symbols.

    labels: the symbols of the text, a space as `␣`. expected: the date that the text names; None if
    it isn't a date in a form the translator knows. is_impossible_day: whether that's because the
    month doesn't have this day. encoder, decoder, cross: the attention weights of all layers and
    heads, (L, H, S, S), (L, H, T, T) and (L, H, T, S). probabilities: probability of each symbol in
    the answer (T). one_vector: the answer if the decoder gets only the mean of the encoder's
    states.
    """

    labels: tuple[str, ...]
    answer: str
    expected: str | None
    is_impossible_day: bool
    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray
    probabilities: np.ndarray
    one_vector: str


@cache
def translator() -> Translator:
    """Load the translator with its trained weights."""
    from pages.learn.two_networks.experiment.model import trained_translator

    return trained_translator()


@cached(key=lambda text: text)
def translate_date(text: str) -> DateTranslation:
    """Translate a text; ValueError for one that the translator can't read."""
    from pages.learn.two_networks.experiment import dates

    ids, model = dates.batch([text]), translator()
    with compute.slot():
        written, result = model.translate(ids)
        one_vector, _ = model.translate(ids, one_vector=True)
    by_name = dates.parse_date(text)
    chosen = result.logits.softmax(-1).gather(-1, written[..., None])
    return DateTranslation(
        labels=tuple(show_spaces(text)),
        answer=dates.decode(written[0].tolist()),
        expected=None if by_name is None else by_name.isoformat(),
        is_impossible_day=dates.is_impossible_day(text),
        encoder=_weights(result.encoder),
        decoder=_weights(result.decoder),
        cross=_weights(result.cross),
        probabilities=chosen[0, :, 0].numpy(),
        one_vector=dates.decode(one_vector[0].tolist()),
    )


def _weights(records: list[AttentionRecord]) -> np.ndarray:
    """Stack the weights of all layers, for the only text: (L, H, T, S)."""
    return np.stack([record.weights[0].numpy() for record in records])


def head_weights(weights: np.ndarray, layer: int, head: int | None) -> np.ndarray:
    """One head's weights in a layer, or the mean over its heads: (L, H, T, S) -> (T, S)."""
    return weights[layer].mean(axis=0) if head is None else weights[layer, head]


def show_spaces(text: str) -> str:
    """Replace spaces with `␣`."""
    return text.replace(" ", "␣")


def attention_sentence(translation: DateTranslation, row: np.ndarray, symbol: int) -> str:
    """Name the text symbol that gets the most attention while the decoder generates `symbol`."""
    letter = translation.answer[symbol : symbol + 1]
    text = "".join(translation.labels)
    at = int(row.argmax())
    around = f"{text[max(0, at - 3) : at]}[{text[at]}]{text[at + 1 : at + 4]}"
    return (
        f"To write symbol {symbol} of its answer, “{letter}”, the decoder gives "
        f"{percent(row[at])} of its attention to symbol {at}, “{text[at]}”, in “{around}”. Its "
        f"probability for “{letter}” is {percent(translation.probabilities[symbol])}."
    )


@dataclass(frozen=True)
class HeldOutResults:
    """The number of correct dates and symbols, with all states and with a single vector."""

    table: pd.DataFrame
    n_right: tuple[int, int]


@cached(key=lambda: "judged")
def held_out_results() -> HeldOutResults:
    """Compare all states with a single vector on dates that weren't in the training data."""
    from pages.learn.two_networks.experiment import dates

    texts, answers = zip(*dates.pairs(N_HELD_OUT, 1, held_out=True), strict=True)
    ids, right, model = dates.batch(list(texts)), dates.batch(list(answers)), translator()

    def share(one_vector: bool) -> tuple[int, float]:
        with compute.slot():
            written: Tensor = model.translate(ids, one_vector=one_vector)[0]
        same = written == right
        return int(same.all(dim=1).sum()), float(same.double().mean())

    (whole, symbols), (whole_of_one, symbols_of_one) = share(False), share(True)
    return HeldOutResults(
        pd.DataFrame(
            {
                "the decoder gets": ["all states", "one vector, their mean"],
                f"correct dates out of {N_HELD_OUT}": [whole, whole_of_one],
                "correct symbols": [f"{symbols:.0%}", f"{symbols_of_one:.0%}"],
            }
        ),
        (whole, whole_of_one),
    )
