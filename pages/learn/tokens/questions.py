"""Quiz questions of the page "Tokens", answered by an installed tokenizer."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from pages.learn.tokens.tokenizers import TokenizedTexts
from ui.widgets.questions import Question

if TYPE_CHECKING:
    from pretrained.tokenization.bpe import FastBpe
    from pretrained.tokenization.gpt2 import Gpt2Bpe


def questions(readings: TokenizedTexts) -> tuple[Question, ...]:
    """Build three questions about an installed BPE tokenizer; none without one."""
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
            prompt=f"A thumbs-up with a skin tone looks like a single character: {thumb}. How many "
            f"tokens does {method} need for it?",
            right=str(n_thumb),
            wrong=tuple(str(n) for n in (1, 2, len(thumb.encode())) if n != n_thumb),
            explanation=f"It consists of {len(thumb)} characters, {len(thumb.encode())} bytes in "
            "all. "
            f"Merges join the bytes into {n_thumb} tokens: {', '.join(map(str, ids(thumb)))}.",
        ),
        Question(
            prompt=f"Does {method} use the same tokens for “sunny” at the start of a text and "
            "after a "
            "space?",
            right="Yes, the same tokens" if same else "No, different tokens",
            wrong=("No, different tokens" if same else "Yes, the same tokens",),
            explanation=f"After a space it's {', '.join(map(str, inside))}. At the start of a text "
            f"it's {', '.join(map(str, alone))}. The space is part of the token.",
        ),
        Question(
            prompt=f"“␣sunny” starts out as six bytes. Which two neighbors does {method} join "
            "first?",
            right=joined,
            wrong=tuple(pair for pair in pairs if pair != joined),
            explanation=f"Of the five pairs, this one was learned first (merge {first.rank:,}). "
            "Pairs "
            "that are frequent in the training text are learned early.",
        ),
    )
