"""Test how much of a visitor's text a model may read."""

from types import SimpleNamespace
from typing import Any

import pytest

from pretrained import Tokens
from serving.limits import MAX_TEXT_CHARACTERS, OverLimit
from serving.prompts import prepare_prompt


class Words:
    """A tokenizer that splits text into words."""

    def encode(self, text: str) -> Tokens:
        """Return one token per word."""
        words = tuple(text.split())
        none = ((0, 0),) * len(words)
        return Tokens(text, tuple(range(len(words))), words, none, (False,) * len(words))


def model(context: int) -> Any:
    """Return a model that reads words, with this context length."""
    config = SimpleNamespace(context_length=context)
    return SimpleNamespace(core=SimpleNamespace(config=config), tokenizer=Words())


@pytest.mark.parametrize(("requested", "capacity"), [(1, 1), (4, 4), (5, 5), (6, 5), (9, 5)])
def test_new_tokens_are_limited_by_the_context(requested: int, capacity: int):
    # three tokens in a context of seven: four new ones are processed, and a fifth is only predicted
    prepared = prepare_prompt(model(7), "one two three", 3, "a test", requested)
    assert prepared.n_new == capacity
    assert bool(prepared.note) == (requested != capacity)


@pytest.mark.parametrize(
    ("text", "limit", "options", "message"),
    [
        ("x" * (MAX_TEXT_CHARACTERS + 3), 9, {}, "5,003.*3.*5,000"),
        ("a b c d", 3, {}, "4.*1.*3.*a test"),
        ("a b c d e f g h", 9, {}, "8.*1.*7.*context"),
        ("a b c d e f g", 9, {"n_new": 4, "min_new": 2}, "7.*1.*6.*context"),
    ],
)
def test_text_that_does_not_fit(text: str, limit: int, options: dict[str, int], message: str):
    with pytest.raises(OverLimit, match=message):
        prepare_prompt(model(7), text, limit, "a test", **options)
