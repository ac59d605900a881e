"""The questions of the page "Block", answered by its own functions."""

from __future__ import annotations

from pages.learn.block.orders import reordered
from pages.learn.block.originals import BASE_2017, DECODER_2017, ENCODER_2017, untrained_layer
from pages.learn.block.parameters import counts
from pages.learn.block.prediction import PARIS, lens
from pages.learn.block.stream import run
from serving import models
from ui.widgets.quiz import Question


def questions() -> list[Question]:
    """Three questions with computed answers; the last one needs a decoder's weights."""
    return [_share_question(), _order_question(), _lens_question() or _layer_question()]


def _share_question() -> Question:
    found = counts(BASE_2017)
    share = found.parts["feed-forward"] / found.total
    return Question(
        ask="Which share of the 2017 base model's parameters is in its feed-forward networks?",
        right=f"{share:.0%}",
        wrong=tuple(f"{share * factor:.0%}" for factor in (0.25, 0.5, 1.75)),
        because=f"{found.parts['feed-forward']:,} of {found.total:,}: two matrices of 512 × 2048 "
        "and their biases in each of 12 layers.",
    )


def _order_question() -> Question:
    found = reordered(ENCODER_2017, PARIS, "reversed", 0).differences
    free, causal = (
        found[f"attention, {kind}"] for kind in ("no mask, no positions", "causal mask")
    )
    moves = "The same rows, in reverse order", "Other rows"
    return Question(
        ask="A head with a causal mask and without positions reads a sentence in reverse. "
        "What comes out?",
        right=moves[causal > 1e-3],
        wrong=(moves[causal <= 1e-3], "The same rows, in the old order"),
        because=f"On “{PARIS}” the largest difference is {causal:.2g} with the mask and "
        f"{free:.1g} without: the mask lets a token see those before it, and those changed.",
    )


def _lens_question() -> Question | None:
    name = models.preferred("decoder")
    if name is None:
        return None
    try:
        done = run(name, PARIS)
        found = lens(name, PARIS, len(done.labels) - 1)
    except models.LOAD_ERRORS:  # the page itself says so where it needs the model
        return None
    n_layers = len(done.norms) - 1
    right = found.first_named
    others = [n for n in (0, n_layers // 4, n_layers // 2, n_layers) if n != right][-3:]
    return Question(
        ask=f"“{PARIS}”: after how many of the {n_layers} layers of {done.title} is its final "
        "choice first the likeliest token?",
        right=str(right),
        wrong=tuple(map(str, others)),
        because=f"Its probability is {found.probability[right]:.2f} after {right} layers"
        + (f", and {found.probability[right - 1]:.2f} one layer before." if right else "."),
    )


def _layer_question() -> Question:
    kinds = (ENCODER_2017, DECODER_2017)
    encoder, decoder = (
        sum(p.numel() for p in untrained_layer(kind, 8, 2048).parameters()) for kind in kinds
    )
    right = decoder / encoder
    return Question(
        ask="How many times the parameters of an encoder layer has a decoder layer of 2017?",
        right=f"{right:.2f}",
        wrong=("1.00", "2.00"),
        because=f"{decoder:,} against {encoder:,}: cross-attention and its norm come on top.",
    )
