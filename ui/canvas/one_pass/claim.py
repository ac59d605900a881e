"""The picture's claim: the next word, and where in the text the model found it."""

from __future__ import annotations

import numpy as np

from pretrained.tokenization.alignment import word_tokens
from serving.content_words import default_token, roles
from serving.flow import Flow, HeadEdge, LogitShares, strongest_edge_into
from serving.one_pass import TEMPERATURES, OnePass
from ui.text.formatting import percent

ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


def selected_token(one_pass: OnePass) -> int:
    """The token selected by default: the last one in a decoder, a pronoun in an encoder."""
    tokens = one_pass.run.tokens
    return len(tokens) - 1 if one_pass.next_token is not None else default_token(tokens)


def clue(one_pass: OnePass, why: LogitShares) -> int | None:
    """The token that adds the most to the logit of the top next word, through all heads together.

    Content words take precedence. The first token counts only if it's the next word itself, because
    idle heads attend to it. The last one doesn't count, because the prediction is made there. None
    if no other token adds anything.
    """
    tokens, kinds = one_pass.run.tokens, roles(one_pass.run.tokens)
    by_key = why.clues.sum(axis=(0, 1))  # (T,)
    allowed = np.array([kind != "other" for kind in kinds])
    allowed[0] = _is_predicted(one_pass, 0)
    allowed[-1] = False
    if not (allowed & (by_key > 0)).any():
        allowed = np.arange(len(tokens)) < len(tokens) - 1
        allowed[0] = False
    if not (allowed & (by_key > 0)).any():
        return None
    return int(np.where(allowed, by_key, -np.inf).argmax())


def clue_edge(one_pass: OnePass, flow: Flow, why: LogitShares, key: int) -> HeadEdge | None:
    """The curve through which the last token reads most from a clue.

    That's the curve with the largest share of the logit. None if all curves between the two tokens
    are too thin to be drawn, or if what they carry lowers the logit.
    """
    last = len(one_pass.run.tokens) - 1
    drawn = flow.edges[(flow.edges[:, 1] == last) & (flow.edges[:, 2] == key)]
    layers = drawn[:, 0].astype(int)
    shares = why.clues[layers, :, key]  # (E, H)
    if not len(layers) or shares.sum(axis=1).max() <= 0:
        return None
    at = int(shares.sum(axis=1).argmax())
    return HeadEdge(int(layers[at]), int(shares[at].argmax()), last, key, float(drawn[at, 3]))


def claim(one_pass: OnePass, flow: Flow, why: LogitShares | None) -> str:
    """One or two sentences for the picture's title."""
    if one_pass.next_token is None or why is None:
        return _encoder_claim(one_pass, flow)
    first = f"The model predicts “{_predicted_word(one_pass)}” ({percent(_probability(one_pass))})."
    key = clue(one_pass, why)
    if key is None:
        return first
    tokens, reading = one_pass.run.tokens, clue_edge(one_pass, flow, why, key)
    if reading is not None and _is_predicted(one_pass, key):
        position = len(tokens.text[: tokens.spans[key][1]].split()) - 1
        where = f"the {ORDINALS[position]} word" if position < len(ORDINALS) else "an earlier word"
        return f"{first} Layer {reading.layer} copied it from {where}."
    word = word_tokens(tokens, key) or tokens.labels[key]
    layer = "" if reading is None else f", which it reads in layer {reading.layer}"
    return f"{first} Its strongest clue is “{word}”{layer}."


def _predicted_word(one_pass: OnePass) -> str:
    """The most likely next token, as a word."""
    assert one_pass.next_token is not None
    return one_pass.next_token.tokens[0].removeprefix("␣") or one_pass.next_token.tokens[0]


def _is_predicted(one_pass: OnePass, token: int) -> bool:
    """Whether a token equals the most likely next one, ignoring spaces and case."""
    piece = one_pass.run.tokens.pieces[token].strip().casefold()
    return piece == _predicted_word(one_pass).strip().casefold()


def _probability(one_pass: OnePass) -> float:
    prediction = one_pass.next_token
    assert prediction is not None
    return float(np.exp(prediction.logits[0] - prediction.log_sums[TEMPERATURES.index(1.0)]))


def _encoder_claim(one_pass: OnePass, flow: Flow) -> str:
    carried = strongest_edge_into(one_pass.run, flow, selected_token(one_pass))
    carried = carried or strongest_edge_into(one_pass.run, flow, None)
    if carried is None:
        return "Every word becomes a vector."
    word, source = (one_pass.run.tokens.labels[token] for token in (carried.query, carried.key))
    return f"“{word}” gets the most from “{source}”, in layer {carried.layer}."


def first_head(one_pass: OnePass, flow: Flow, why: LogitShares | None) -> HeadEdge | None:
    """The head and the word pair that the claim is about; they're opened first."""
    if why is not None and (key := clue(one_pass, why)) is not None:
        reading = clue_edge(one_pass, flow, why, key)
        if reading is not None:
            return reading
    selected = strongest_edge_into(one_pass.run, flow, selected_token(one_pass))
    return selected or strongest_edge_into(one_pass.run, flow, None)
