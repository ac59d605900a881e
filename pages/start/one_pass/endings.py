"""Compare the same word in a decoder and an encoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from serving.one_pass import OnePass
from ui.text.formatting import format_number, plural
from ui.widgets.visit import find_overlapping


@dataclass(frozen=True)
class TokenEnding:
    """The result for one token in one model.

    n_seen: number of tokens that it can look at, including itself. later_share: share of its
    attention on later tokens, averaged over all heads and layers. nearest: the other ordinary token
    with the most similar final vector, and their cosines before the first layer and after the last;
    None without another token.
    """

    passed: OnePass
    token: int
    n_seen: int
    later_share: float
    nearest: tuple[int, float, float] | None


def same_token(token: int, here: OnePass, there: OnePass) -> int:
    """The token at the same characters in another pass over the same text.

    Special tokens have no characters, so they map to the last ordinary token.
    """
    special = there.run.tokens.special
    ordinary = [number for number, is_special in enumerate(special) if not is_special]
    spans = {number: there.run.tokens.spans[number] for number in ordinary}
    place = here.run.tokens.spans[token]
    at = find_overlapping(place, spans.items())
    return int(at) if at is not None else (ordinary or [len(special) - 1])[-1]


def ending(one_pass: OnePass, token: int) -> TokenEnding:
    """The result for this token in this pass."""
    run = one_pass.run
    weights = run.weights[:, :, token]  # (L, H, S)
    return TokenEnding(
        passed=one_pass,
        token=token,
        n_seen=token + 1 if run.causal else len(run.tokens),
        later_share=float(weights[..., token + 1 :].sum(axis=-1).mean()),
        nearest=_nearest(one_pass, token),
    )


def _nearest(one_pass: OnePass, token: int) -> tuple[int, float, float] | None:
    states = one_pass.run.tensors.states.numpy()
    others = [
        number
        for number, special in enumerate(one_pass.run.tokens.special)
        if number != token and not special
    ]
    if not others:
        return None
    before, after = (_cosines(states[layer], token) for layer in (0, -1))
    nearest = max(others, key=lambda number: after[number])
    return nearest, float(before[nearest]), float(after[nearest])


def _cosines(vectors: np.ndarray, token: int) -> np.ndarray:
    """Cosine between each vector (T, C) and one token's vector: (T,)."""
    lengths = np.linalg.norm(vectors, axis=1)
    cosines: np.ndarray = vectors @ vectors[token] / (lengths * lengths[token])
    return cosines


def side_by_side(decoder: TokenEnding, encoder: TokenEnding) -> pd.DataFrame:
    """One row per property, one column per model."""
    rows: dict[str, list[str]] = {
        "layers, heads per layer": [],
        "length of the text": [],
        "the token can look at": [],
        "attention on later tokens": [],
        "most similar final vector": [],
        "output": [],
        "what happens next": [],
    }
    for one in (decoder, encoder):
        run = one.passed.run
        n_layers, n_heads = run.weights.shape[:2]
        answers = [
            f"{n_layers}, {n_heads}",
            plural(len(run.tokens), "token"),
            f"{one.n_seen} of {plural(len(run.tokens), 'token')}",
            f"{one.later_share:.1%}",
            _similarity_text(one),
            *_outcome(one),
        ]
        for row, answer in zip(rows.values(), answers, strict=True):
            row.append(answer)
    titles = [one.passed.run.title for one in (decoder, encoder)]
    kinds = ("decoder", "encoder")
    names = [f"{title} ({kind})" for title, kind in zip(titles, kinds, strict=True)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names).reset_index(names="property")


def _similarity_text(one: TokenEnding) -> str:
    if one.nearest is None:
        return "none: the text has no other token"
    other, before, after = one.nearest
    label = one.passed.run.tokens.labels[other]
    return f"“{label}” (cosine {after:.2f}, before the first layer {before:.2f})"


def _outcome(one: TokenEnding) -> tuple[str, str]:
    """The model's output, and how it's used."""
    if one.passed.next_token is None:
        return "one vector per token", "the vectors are used directly; no text is generated"
    likeliest, probability = one.passed.guesses[-1], one.passed.guess_probabilities[-1]
    return (
        f"the most likely next token is “{likeliest}”: {format_number(probability, '.1%')}",
        "one token is chosen and added to the text, and the model runs again",
    )
