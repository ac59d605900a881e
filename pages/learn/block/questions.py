"""The questions of the page "Block", answered by its own functions."""

from __future__ import annotations

from pages.learn.block.orders import reordered
from pages.learn.block.originals import BASE_2017, DECODER_2017, ENCODER_2017, untrained_layer
from pages.learn.block.parameters import counts
from pages.learn.block.prediction import PARIS, lens
from pages.learn.block.sections import COUNTS, LENS, ORDER, STEPS
from pages.learn.block.stream import run
from serving import models
from ui.text.number_text import percent, written
from ui.widgets.questions import Question


def questions() -> list[Question]:
    """Three questions with computed answers; the last one needs a decoder's weights."""
    return [_share_question(), _order_question(), _lens_question() or _layer_question()]


def _look_in(section: str) -> str:
    """Where on the page the answer can be seen: it shows one section at a time."""
    return f"Choose the section *{section}* to look."


def _share_question() -> Question:
    base_counts = counts(BASE_2017)
    share = base_counts.parts["feed-forward"] / base_counts.total
    return Question(
        ask="Which share of the 2017 base model's parameters is in its feed-forward networks? "
        f"{_look_in(COUNTS)}",
        right=f"{share:.0%}",
        wrong=tuple(f"{share * factor:.0%}" for factor in (0.25, 0.5, 1.75)),
        because=f"{base_counts.parts['feed-forward']:,} of {base_counts.total:,}: two matrices of "
        "512 × 2048 and their biases in each of 12 layers.",
    )


def _order_question() -> Question:
    differences = reordered(ENCODER_2017, PARIS, "reversed", 0).differences
    free, causal = (
        differences[f"attention, {kind}"] for kind in ("no mask, no positions", "causal mask")
    )
    moves = "The same rows, in reverse order", "Other rows"
    return Question(
        ask="A head with a causal mask and without positions reads a sentence in reverse. "
        f"What comes out? {_look_in(ORDER)}",
        right=moves[causal > 1e-3],
        wrong=(moves[causal <= 1e-3], "The same rows, in the old order"),
        because=f"On “{PARIS}” the largest difference is {written(causal, '.2g')} with the mask "
        f"and {written(free, '.1g')} without: the mask lets a token see those before it, and "
        "those changed.",
    )


def _lens_question() -> Question | None:
    name = models.preferred("gpt2")
    if name is None:
        return None
    try:
        stream = run(name, PARIS)
        lens_table = lens(name, PARIS, len(stream.labels) - 1)
    except models.LOAD_ERRORS:  # the page itself says so where it needs the model
        return None
    n_layers = len(stream.norms) - 1
    right = lens_table.first_named
    other_layers = sorted({0, n_layers // 4, n_layers // 2, n_layers} - {right})[-3:]
    chances = [percent(probability) for probability in lens_table.probability.tolist()]
    return Question(
        ask=f"“{PARIS}”: after how many of the {n_layers} layers of {stream.title} is its final "
        f"choice first the likeliest token? {_look_in(LENS)}",
        right=str(right),
        wrong=tuple(map(str, other_layers)),
        because=f"Its probability is {chances[right]} after {right} layers"
        + (f", and {chances[right - 1]} one layer before." if right else "."),
    )


def _layer_question() -> Question:
    kinds = (ENCODER_2017, DECODER_2017)
    encoder, decoder = (
        sum(p.numel() for p in untrained_layer(kind, 8, 2048).parameters()) for kind in kinds
    )
    right = decoder / encoder
    return Question(
        ask="How many times the parameters of an encoder layer has a decoder layer of 2017? "
        f"{_look_in(STEPS)}",
        right=f"{right:.2f}",
        wrong=("1.00", "2.00"),
        because=f"{decoder:,} against {encoder:,}: cross-attention and its norm come on top.",
    )
