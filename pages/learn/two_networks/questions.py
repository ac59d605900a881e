"""The questions of the page "From two networks to one", answered by the translator."""

from __future__ import annotations

import numpy as np

from pages.learn.two_networks.translated import FIRST, N_JUDGED, Translated, judged, translated
from ui.widgets.questions import Question, nearest


def questions(translation: Translated) -> list[Question]:
    """Three questions: where cross-attention comes from, its shape, and what one vector keeps."""
    return [_later(translation), _shape(), _one_vector()]


def _later(translation: Translated) -> Question:
    decoder = translation.decoder
    above = np.triu(np.ones(decoder.shape[-2:]), k=1) > 0
    hidden, cross = float(decoder[..., above].sum()), float(translation.cross[:, :, 0].min())
    right, wrong = nearest(
        hidden + (0.0 if cross > 0 else 1.0),
        {"The decoder's own attention only": 0.0, "Cross-attention too": 1.0},
    )
    return Question(
        ask="Which attention of the decoder needs a mask that hides what comes later?",
        right=right,
        wrong=wrong,
        because=f"All its own weights on later symbols add up to {hidden:.1f}. Cross-attention may "
        "look at the whole text: it has been read already.",
    )


def _shape() -> Question:
    rows, columns = translated(FIRST).cross.shape[-2:]
    return Question(
        ask=f"A text has {columns} symbols and the answer {rows}. What is the shape of one "
        "head's cross-attention weights?",
        right=f"{rows} × {columns}",
        wrong=(f"{rows} × {rows}", f"{columns} × {columns}"),
        because=f"A row for each of {rows} queries of the answer, a column for each of {columns} "
        "keys of the text.",
    )


def _one_vector() -> Question:
    with_all, with_one = judged().n_right
    right, wrong = nearest(
        with_one / max(with_all, 1), {"Nearly all": 1.0, "About half": 0.5, "Nearly none": 0.0}
    )
    return Question(
        ask="The decoder gets the mean of the encoder's states in place of every state. How many "
        "dates does this translator still get right?",
        right=right,
        wrong=wrong,
        because=f"{with_one} of {N_JUDGED} dates, and {with_all} with every state: a mean does not "
        "say where a symbol stood.",
    )
