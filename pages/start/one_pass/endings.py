"""The same word in a decoder and in an encoder, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from serving.one_pass import OnePass
from ui.text.number_text import counted, written
from ui.widgets.visit import overlapping


@dataclass(frozen=True)
class Ending:
    """How the way of one token through one model ends.

    n_seen: tokens that it may look at, itself included. later_share: the share of its attention, in
    the mean over all heads of all layers, that goes to tokens behind it. nearest: the other
    ordinary token whose vector is most alike in the end, and the cosines of the two vectors before
    the first layer and after the last; None if there is no other.
    """

    passed: OnePass
    token: int
    n_seen: int
    later_share: float
    nearest: tuple[int, float, float] | None


def same_token(token: int, here: OnePass, there: OnePass) -> int:
    """The token of another pass over the same text that stands where this one does.

    Tokens that a tokenizer added stand nowhere; for them it is the last ordinary token.
    """
    special = there.run.tokens.special
    ordinary = [number for number, is_special in enumerate(special) if not is_special]
    spans = {number: there.run.tokens.spans[number] for number in ordinary}
    place = here.run.tokens.spans[token]
    at = overlapping(place, spans.items())
    return int(at) if at is not None else (ordinary or [len(special) - 1])[-1]


def ending(passed: OnePass, token: int) -> Ending:
    """How the way of this token ends."""
    run = passed.run
    weights = run.weights[:, :, token]  # (L, H, S)
    return Ending(
        passed=passed,
        token=token,
        n_seen=token + 1 if run.causal else len(run.tokens),
        later_share=float(weights[..., token + 1 :].sum(axis=-1).mean()),
        nearest=_nearest(passed, token),
    )


def _nearest(passed: OnePass, token: int) -> tuple[int, float, float] | None:
    states = passed.run.tensors.states.numpy()
    others = [
        number
        for number, special in enumerate(passed.run.tokens.special)
        if number != token and not special
    ]
    if not others:
        return None
    before, after = (_cosines(states[layer], token) for layer in (0, -1))
    nearest = max(others, key=lambda number: after[number])
    return nearest, float(before[nearest]), float(after[nearest])


def _cosines(vectors: np.ndarray, token: int) -> np.ndarray:
    """The cosine of the angle between each vector (T, C) and that of one token: (T,)."""
    lengths = np.linalg.norm(vectors, axis=1)
    cosines: np.ndarray = vectors @ vectors[token] / (lengths * lengths[token])
    return cosines


def side_by_side(decoder: Ending, encoder: Ending) -> pd.DataFrame:
    """A row a question, a column a model."""
    rows: dict[str, list[str]] = {
        "layers, heads in each": [],
        "the text is cut into": [],
        "the token may look at": [],
        "of its attention goes to later tokens": [],
        "its vector ends most like that of": [],
        "the end": [],
        "and then": [],
    }
    for one in (decoder, encoder):
        run = one.passed.run
        n_layers, n_heads = run.weights.shape[:2]
        answers = [
            f"{n_layers}, {n_heads}",
            counted(len(run.tokens), "token"),
            f"{one.n_seen} of {counted(len(run.tokens), 'token')}",
            f"{one.later_share:.1%}",
            _alike(one),
            *_end(one),
        ]
        for row, answer in zip(rows.values(), answers, strict=True):
            row.append(answer)
    titles = [one.passed.run.title for one in (decoder, encoder)]
    kinds = ("decoder", "encoder")
    names = [f"{title} ({kind})" for title, kind in zip(titles, kinds, strict=True)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names).reset_index(names="question")


def _alike(one: Ending) -> str:
    if one.nearest is None:
        return "there is no other"
    other, before, after = one.nearest
    label = one.passed.run.tokens.labels[other]
    return f"“{label}”: cosine {after:.2f} (before the first layer {before:.2f})"


def _end(one: Ending) -> tuple[str, str]:
    """What comes out, and what is done with it."""
    if one.passed.next_token is None:
        return "one vector for every token", "nothing is written: the vectors are used as they are"
    likeliest, probability = one.passed.guesses[-1], one.passed.guess_probabilities[-1]
    return (
        f"after the last token “{likeliest}” is likeliest: {written(probability, '.1%')}",
        "a token is chosen, written after the text, and all begins again",
    )
