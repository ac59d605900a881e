"""Quiz questions of the page "Block", answered by its own functions."""

from __future__ import annotations

from pages.learn.block.original_layers import BASE_2017, DECODER_2017, ENCODER_2017, untrained_layer
from pages.learn.block.parameters import counts
from pages.learn.block.permutation import permuted_outputs
from pages.learn.block.prediction import PARIS, lens
from pages.learn.block.sections import COUNTS, LENS, ORDER, STEPS
from pages.learn.block.stream import run
from serving import models
from ui.text.formatting import format_number, percent, plural
from ui.widgets.questions import Question


def questions() -> list[Question]:
    """Three questions with computed answers; the third depends on the weights."""
    return [_share_question(), _order_question(), _lens_question() or _layer_question()]


def _section_hint(section: str) -> str:
    """Name the section that shows the answer."""
    return f"To see how, open the *{section}* section."


def _share_question() -> Question:
    base_counts = counts(BASE_2017)
    share = base_counts.parts["feed-forward"] / base_counts.total
    return Question(
        prompt="What share of the 2017 base model's parameters is in its feed-forward networks? "
        f"{_section_hint(COUNTS)}",
        right=f"{share:.0%}",
        wrong=tuple(f"{share * factor:.0%}" for factor in (0.25, 0.5, 1.75)),
        explanation=f"They have {base_counts.parts['feed-forward']:,} of {base_counts.total:,} "
        "parameters. Each of the 12 layers has two matrices of 512 × 2048 and their biases.",
    )


def _order_question() -> Question:
    differences = permuted_outputs(ENCODER_2017, PARIS, "reversed", 0).differences
    free, causal = (
        differences[f"attention, {kind}"] for kind in ("no mask, no positions", "causal mask")
    )
    moves = "The same rows, in reverse order", "Different rows"
    return Question(
        prompt="A head with a causal mask but no positions reads a sentence in reverse. "
        f"What's its output? {_section_hint(ORDER)}",
        right=moves[causal > 1e-3],
        wrong=(moves[causal <= 1e-3], "The same rows, in the original order"),
        explanation="With the mask a token sees only the tokens before it, and reversing the text "
        f"changes which ones those are. On “{PARIS}” the largest difference is "
        f"{format_number(causal, '.2g')} with the mask and {format_number(free, '.1g')} without "
        "it.",
    )


def _lens_question() -> Question | None:
    name = models.preferred("gpt2")
    if name is None:
        return None
    try:
        stream = run(name, PARIS)
        lens_table = lens(name, PARIS, len(stream.labels) - 1)
    except models.LOAD_ERRORS:  # the page shows the error itself
        return None
    n_layers = len(stream.norms) - 1
    right = lens_table.first_layer
    other_layers = sorted({0, n_layers // 4, n_layers // 2, n_layers} - {right})[-3:]
    chances = [percent(probability) for probability in lens_table.probability.tolist()]
    return Question(
        prompt=f"{stream.title} reads “{PARIS}”. After how many of its {n_layers} layers does its "
        f"final choice first become the most likely token? {_section_hint(LENS)}",
        right=str(right),
        wrong=tuple(map(str, other_layers)),
        explanation=f"Its probability is {chances[right]} after {plural(right, 'layer')}"
        + (f", and {chances[right - 1]} one layer earlier." if right else "."),
    )


def _layer_question() -> Question:
    kinds = (ENCODER_2017, DECODER_2017)
    encoder, decoder = (
        sum(p.numel() for p in untrained_layer(kind, 8, 2048).parameters()) for kind in kinds
    )
    right = decoder / encoder
    return Question(
        prompt="In the 2017 Transformer, how many times as many parameters does a decoder layer "
        "have "
        f"as an encoder layer? {_section_hint(STEPS)}",
        right=f"{right:.2f}",
        wrong=("1.00", "2.00"),
        explanation=f"A decoder layer has {decoder:,} parameters and an encoder layer "
        f"{encoder:,}. The "
        "difference is cross-attention and its norm.",
    )
