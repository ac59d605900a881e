"""The questions of the page "Tokens", answered by a tokenizer that is here."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from pages.learn.tokens.tokenizers import Readings
from ui.widgets.questions import Question

if TYPE_CHECKING:
    from pretrained.tokenization.bpe import FastBpe
    from pretrained.tokenization.gpt2 import Gpt2Bpe


def questions(readings: Readings) -> tuple[Question, ...]:
    """Three questions that an installed tokenizer answers; no questions without a tokenizer."""
    from pretrained.tokenization.bpe import FastBpe
    from pretrained.tokenization.gpt2 import Gpt2Bpe

    for reading in readings.by_method.values():
        if isinstance(reading.tokenizer, Gpt2Bpe | FastBpe):
            return _questions(reading.method, reading.tokenizer)
    return ()


@cache
def _questions(method: str, tokenizer: Gpt2Bpe | FastBpe) -> tuple[Question, ...]:
    from pretrained.tokenization.step_by_step import merge_steps
    from pretrained.tokenization.tokens import printable as visible

    def ids(text: str) -> tuple[int, ...]:
        return tokenizer.encode(text).ids

    thumb = "👍🏽"
    n_thumb = len(ids(thumb))
    inside, alone = ids(" sunny"), ids("sunny")
    same = inside == alone
    first = merge_steps(b" sunny", tokenizer.merge_ranks)[1]
    pairs = dict.fromkeys(
        f"{visible(left)} + {visible(right)}"
        for left, right in pairwise(merge_steps(b" sunny", {})[0].parts)
    )
    joined = list(pairs)[first.merged or 0]
    return (
        Question(
            ask=f"A thumbs-up with a skin tone is one sign on screen: {thumb}. How many tokens is "
            f"it for {method}?",
            right=str(n_thumb),
            wrong=tuple(str(n) for n in (1, 2, len(thumb.encode())) if n != n_thumb),
            because=f"It is {len(thumb)} characters and {len(thumb.encode())} bytes; merges left "
            f"{n_thumb} tokens: {', '.join(map(str, ids(thumb)))}.",
        ),
        Question(
            ask=f"Has “sunny” the same token for {method} at the start of a text as after a space?",
            right="Yes, the same" if same else "No, other tokens",
            wrong=("No, other tokens" if same else "Yes, the same",),
            because=f"After a space: {', '.join(map(str, inside))}. At the start: "
            f"{', '.join(map(str, alone))}. The space is a byte of the token.",
        ),
        Question(
            ask=f"“␣sunny” begins as six bytes. Which two neighbours does {method} join first?",
            right=joined,
            wrong=tuple(pair for pair in pairs if pair != joined),
            because=f"Its merge is number {first.rank:,} of the list, the earliest of the five "
            "pairs: neighbours that were frequent in the training text come early.",
        ),
    )
