"""A visitor's text as a model reads it, once every limit on it has been checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pretrained import Tokens
from serving.limits import InvalidInput, OverLimit, check_text, check_tokens

if TYPE_CHECKING:
    from attention_core import Transformer
    from pretrained import Tokenizer

NO_TOKEN = "There is no token in this text: type a word or more."
NO_TOKEN_IN_PROMPT = "There is no token in this prompt: type a word or more."


class Reader(Protocol):
    """A model that reads text: a trained one, or one with random weights."""

    @property
    def core(self) -> Transformer:
        """The model itself, for its context."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Text to tokens."""


@dataclass(frozen=True)
class Prepared:
    """The tokens of a text that fit the model, and how many new ones may follow them.

    note: why there is room for fewer new tokens than were asked for, or nothing.
    """

    tokens: Tokens
    n_new: int
    note: str

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the tokens."""
        return self.tokens.ids


def prepare(
    model: Reader,
    text: str,
    limit: int,
    purpose: str,
    n_new: int = 0,
    *,
    at_least: int = 1,
    empty: str = "",
) -> Prepared:
    """The tokens of a text, and of `n_new` new tokens as many as the context has room for.

    limit: tokens of the text that `purpose` ("a head map") takes. The last new token is never run,
    so it needs no room. at_least: new tokens for which there has to be room. empty: the message
    for a text without a token.
    Raises: OverLimit for a text that is too long for the page, for `purpose` or for the model,
    Refused with the message `empty` for one without a token.
    """
    check_text(text)
    tokens = model.tokenizer.encode(text)
    n = len(tokens.ids)
    check_tokens(n, limit, purpose)
    if not n:
        raise InvalidInput(empty or (NO_TOKEN_IN_PROMPT if n_new else NO_TOKEN))
    context = model.core.config.context_length
    check_tokens(n + (at_least - 1 if n_new else 0), context, "the context of this model")
    room = min(n_new, context - n + 1)
    note = (
        "" if room == n_new else f"The context of this model has room for {room} new tokens only."
    )
    return Prepared(tokens, room, note)


def check_choice(n_new: int, smallest: int, largest: int) -> None:
    """Raise OverLimit for a number of new tokens that a page does not offer."""
    if not smallest <= n_new <= largest:
        raise OverLimit(f"Choose {smallest} to {largest} new tokens, not {n_new}.")
