"""Quiz questions of the page "From two networks to one", answered by the translator."""

from __future__ import annotations

import numpy as np

from pages.learn.two_networks.translation import (
    FIRST,
    N_HELD_OUT,
    DateTranslation,
    held_out_results,
    translate_date,
)
from ui.widgets.questions import Question, nearest_choice


def questions(translation: DateTranslation) -> list[Question]:
    """Build three questions: about masks, the shape of cross-attention, and a single vector."""
    return [_later(translation), _shape(), _one_vector()]


def _later(translation: DateTranslation) -> Question:
    decoder = translation.decoder
    above = np.triu(np.ones(decoder.shape[-2:]), k=1) > 0
    hidden, cross = float(decoder[..., above].sum()), float(translation.cross[:, :, 0].min())
    right, wrong = nearest_choice(
        hidden + (0.0 if cross > 0 else 1.0),
        {"Only its self-attention": 0.0, "Its cross-attention too": 1.0},
    )
    return Question(
        prompt="Which attention in the decoder needs a causal mask?",
        right=right,
        wrong=wrong,
        explanation=f"With the mask, self-attention's weights on later symbols add up to "
        f"{hidden:.1f}. "
        "Cross-attention can see the whole text, because the encoder has already read it.",
    )


def _shape() -> Question:
    rows, columns = translate_date(FIRST).cross.shape[-2:]
    return Question(
        prompt=f"A text has {columns} symbols and the answer {rows}. What is the shape of one "
        "head's cross-attention weights?",
        right=f"{rows} × {columns}",
        wrong=(f"{rows} × {rows}", f"{columns} × {columns}"),
        explanation=f"There is one row for each of the answer's {rows} queries, and one column for "
        f"each of the text's {columns} keys.",
    )


def _one_vector() -> Question:
    with_all, with_one = held_out_results().n_right
    right, wrong = nearest_choice(
        with_one / max(with_all, 1), {"Nearly all": 1.0, "About half": 0.5, "Almost none": 0.0}
    )
    return Question(
        prompt="Suppose the decoder gets only the mean of the encoder's states. How many dates "
        "does "
        "this translator still get right?",
        right=right,
        wrong=wrong,
        explanation=f"It gets {with_one} of {N_HELD_OUT} dates right, but {with_all} with all "
        "states. "
        "The mean doesn't preserve the position of a symbol.",
    )
