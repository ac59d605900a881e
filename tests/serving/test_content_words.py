"""Test content words and pronouns of a text, and finding a word in another text."""

import pytest

from serving import models
from serving.content_words import default_token, roles, same_word
from serving.heads import first_head, strongest_tokens
from serving.runs import run
from tests.helpers.bundled_models import DECODER, ENCODER

pytestmark = pytest.mark.usefixtures("bundled_weights")

ANIMAL = "The animal didn't cross the street because it was too tired"
TROPHY = "The trophy did not fit in the suitcase because it was too big"


def encode(name: str, text: str):
    return models.get(name).tokenizer.encode(text)


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_token_has_the_role_of_its_word(name: str):
    tokens = encode(name, ANIMAL)
    kinds = dict(zip(tokens.labels, roles(tokens), strict=True))
    assert kinds["it"] == "pronoun"
    assert {kinds[word] for word in ("animal", "cross", "street", "tired")} == {"content"}
    assert {kinds[word] for word in ("was", "too", "because", "didn")} == {"other"}
    assert tokens.labels[default_token(tokens)] == "it"


@pytest.mark.parametrize(
    ("word", "match"),
    [("it", "it"), ("The", "The"), ("animal", "big"), ("tired", "big"), ("because", "because"),
     ("didn't", None)],
)  # fmt: skip
def test_word_is_found_by_text_or_role(word: str, match: str | None):
    start = ANIMAL.index(word)
    span = same_word(ANIMAL, (start, start + len(word)), TROPHY)
    assert (span and TROPHY[slice(*span)]) == match


@pytest.mark.parametrize(
    ("name", "text", "pair"),
    [(DECODER, TROPHY, ("it", "trophy")), (ENCODER, ANIMAL, ("it", "animal"))],
)  # fmt: skip
def test_default_head_shows_what_a_pronoun_attends_to(name: str, text: str, pair: tuple[str, str]):
    passed = run(name, text)
    head = first_head(passed)
    query, key = strongest_tokens(passed, head.layer, head.head)
    assert (passed.tokens.labels[query], passed.tokens.labels[key]) == pair
    weights = passed.weights[:, :, query, :query]
    content = [i for i, role in enumerate(roles(passed.tokens)[:query]) if role == "content"]
    assert passed.weights[head.layer, head.head, query, key] == weights[..., content].max()


@pytest.mark.parametrize("name", [DECODER, ENCODER])
@pytest.mark.parametrize("text", ["a", "!?", "it", "🙂🙂🙂", "the the the"])
def test_every_text_has_a_head_and_a_pair(name: str, text: str):
    passed = run(name, text)
    head = first_head(passed)
    n_layers, n_heads, n_tokens = passed.weights.shape[:3]
    assert 0 <= head.layer < n_layers
    assert 0 <= head.head < n_heads
    query, key = strongest_tokens(passed, head.layer, head.head)
    assert 0 <= key <= n_tokens - 1
    assert key <= query or not passed.causal
