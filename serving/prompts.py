"""Tokenizes a visitor's text and checks every limit on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pretrained import Tokens
from serving.limits import InvalidInput, OverLimit, check_text, check_tokens

if TYPE_CHECKING:
    from attention_core import Transformer
    from pretrained import Tokenizer

EMPTY_TEXT = "This text has no tokens: type a word or more."
EMPTY_PROMPT = "This prompt has no tokens: type a word or more."


class TextModel(Protocol):
    """A model with a tokenizer, with trained or random weights."""

    @property
    def core(self) -> Transformer:
        """The model; its context length limits the prompt."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""


@dataclass(frozen=True)
class PreparedPrompt:
    """The tokens of a text that fits the model, and the number of new tokens that may follow.

    note: a message if the context limits the number of new tokens; otherwise empty.
    """

    tokens: Tokens
    n_new: int
    note: str

    @property
    def ids(self) -> tuple[int, ...]:
        """The token ids."""
        return self.tokens.ids


def prepare_prompt(
    model: TextModel,
    text: str,
    limit: int,
    purpose: str,
    n_new: int = 0,
    *,
    min_new: int = 1,
    empty: str = "",
) -> PreparedPrompt:
    """Tokenize a text, and reduce `n_new` to the number of new tokens that fit into the context.

    limit: the most tokens for `purpose` (for example "a head map"). min_new: the number of new
    tokens that must fit. The last new token is never run, so it needs no position in the context.
    empty: the message for a text without tokens.
    Raises: OverLimit for a text that is too long for the page, `purpose` or the model; InvalidInput
    with the message `empty` for a text without tokens.
    """
    check_text(text)
    tokens = model.tokenizer.encode(text)
    n = len(tokens.ids)
    context = model.core.config.context_length
    longest = context - (min_new - 1 if n_new else 0)
    if longest < limit:
        limit, purpose = longest, "the context of this model"
    check_tokens(n, limit, purpose)
    if not n:
        raise InvalidInput(empty or (EMPTY_PROMPT if n_new else EMPTY_TEXT))
    n_fitting = min(n_new, context - n + 1)
    note = (
        "" if n_fitting == n_new else f"Only {n_fitting} new tokens fit into the model's context."
    )
    return PreparedPrompt(tokens, n_fitting, note)


def check_choice(n_new: int, smallest: int, largest: int) -> None:
    """Raise OverLimit for a number of new tokens outside the page's range."""
    if not smallest <= n_new <= largest:
        raise OverLimit(f"Choose {smallest} to {largest} new tokens, not {n_new}.")
