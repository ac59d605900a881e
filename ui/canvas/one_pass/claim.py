"""The picture's claim: the next word, and where in the text the model found it."""

from __future__ import annotations

import numpy as np

from pretrained.tokenization.alignment import word_of
from serving.content_words import default_token, roles
from serving.flow import Carried, Flow, Why, strongest_into
from serving.one_pass import TEMPERATURES, OnePass
from ui.text.number_text import percent

ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


def selected_token(passed: OnePass) -> int:
    """The token selected first: the last one for a decoder, a pronoun for an encoder."""
    tokens = passed.run.tokens
    return len(tokens) - 1 if passed.next_token is not None else default_token(tokens)


def clue(passed: OnePass, why: Why) -> int | None:
    """The token that adds the most to the logit of the top next word, through all heads together.

    Content words take precedence. The first token counts only if it's the next word itself, because
    idle heads attend to it. The last one doesn't count, because the prediction is made there. None
    if no other token adds anything.
    """
    tokens, kinds = passed.run.tokens, roles(passed.run.tokens)
    by_key = why.clues.sum(axis=(0, 1))  # (T,)
    allowed = np.array([kind != "other" for kind in kinds])
    allowed[0] = _is_next(passed, 0)
    allowed[-1] = False
    if not (allowed & (by_key > 0)).any():
        allowed = np.arange(len(tokens)) < len(tokens) - 1
        allowed[0] = False
    if not (allowed & (by_key > 0)).any():
        return None
    return int(np.where(allowed, by_key, -np.inf).argmax())


def read_in(passed: OnePass, flow: Flow, why: Why, key: int) -> Carried | None:
    """The curve through which the last token reads the most of a clue.

    That's the curve with the largest share of the logit. None if all curves between the two tokens
    are too thin to be drawn, or if what they carry lowers the logit.
    """
    last = len(passed.run.tokens) - 1
    drawn = flow.edges[(flow.edges[:, 1] == last) & (flow.edges[:, 2] == key)]
    layers = drawn[:, 0].astype(int)
    shares = why.clues[layers, :, key]  # (E, H)
    if not len(layers) or shares.sum(axis=1).max() <= 0:
        return None
    at = int(shares.sum(axis=1).argmax())
    return Carried(int(layers[at]), int(shares[at].argmax()), last, key, float(drawn[at, 3]))


def claim(passed: OnePass, flow: Flow, why: Why | None) -> str:
    """One or two sentences for the picture's title."""
    if passed.next_token is None or why is None:
        return _of_an_encoder(passed, flow)
    first = f"The model predicts “{_next(passed)}” ({percent(_probability(passed))})."
    key = clue(passed, why)
    if key is None:
        return first
    tokens, reading = passed.run.tokens, read_in(passed, flow, why, key)
    if reading is not None and _is_next(passed, key):
        position = len(tokens.text[: tokens.spans[key][1]].split()) - 1
        where = f"the {ORDINALS[position]} word" if position < len(ORDINALS) else "an earlier word"
        return f"{first} Layer {reading.layer} copied it from {where}."
    word = word_of(tokens, key) or tokens.labels[key]
    layer = "" if reading is None else f", which it reads in layer {reading.layer}"
    return f"{first} Its strongest clue is “{word}”{layer}."


def _next(passed: OnePass) -> str:
    """The most likely next token, as a word."""
    assert passed.next_token is not None
    return passed.next_token.tokens[0].removeprefix("␣") or passed.next_token.tokens[0]


def _is_next(passed: OnePass, token: int) -> bool:
    """Whether a token equals the most likely next one, ignoring spaces and case."""
    piece = passed.run.tokens.pieces[token].strip().casefold()
    return piece == _next(passed).strip().casefold()


def _probability(passed: OnePass) -> float:
    prediction = passed.next_token
    assert prediction is not None
    return float(np.exp(prediction.logits[0] - prediction.log_sums[TEMPERATURES.index(1.0)]))


def _of_an_encoder(passed: OnePass, flow: Flow) -> str:
    carried = strongest_into(passed.run, flow, selected_token(passed))
    carried = carried or strongest_into(passed.run, flow, None)
    if carried is None:
        return "Every word becomes a vector."
    word, source = (passed.run.tokens.labels[token] for token in (carried.query, carried.key))
    return f"“{word}” gets the most from “{source}”, in layer {carried.layer}."


def first_head(passed: OnePass, flow: Flow, why: Why | None) -> Carried | None:
    """The head and the word pair that the claim is about; they're opened first."""
    if why is not None and (key := clue(passed, why)) is not None:
        reading = read_in(passed, flow, why, key)
        if reading is not None:
            return reading
    selected = strongest_into(passed.run, flow, selected_token(passed))
    return selected or strongest_into(passed.run, flow, None)
