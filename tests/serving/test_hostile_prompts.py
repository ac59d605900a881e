"""A hundred hostile prompts, fifty a model: a recorded pass of their text, or a sentence."""

import unicodedata

import pytest

from pretrained.tokenization.bpe import FastBpe
from pretrained.tokenization.tokens import Tokenizer, Tokens, clean
from serving import models, runs
from serving.limits import MAX_MAP_TOKENS
from serving.prompts import NO_TOKEN
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.prompts import HOSTILE_PROMPTS

SENTENCES = (NO_TOKEN, "over the limit of 5,000. Shorten", "over the limit of 256 for a head map")
# What WordPiece leaves out of a text: white space, marks, and what nobody sees.
LEFT_OUT = {"Cc", "Cf", "Cn", "Co", "Mn", "Zl", "Zp", "Zs"}


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_each_is_a_recorded_pass_of_its_text_or_a_sentence(name: str):
    passes, refused, sentences = 0, list[str](), set[str]()
    tokenizer = models.get(name).tokenizer
    with runs.forward.disabled():
        for prompt in HOSTILE_PROMPTS:
            try:
                run = runs.run(name, prompt)
            except ValueError as error:
                sentences |= {sentence for sentence in SENTENCES if sentence in str(error)}
                refused.append(str(error))
                continue
            passes += 1
            assert run.tokens.text == clean(prompt)
            check_rebuilt(run.tokens, tokenizer)
            assert len(set(run.tokens.labels)) == len(run.tokens) <= MAX_MAP_TOKENS
            assert abs(run.weights.sum(-1) - 1).max() < 1e-5  # numbers, and none is NaN
            assert run.weights.shape[-1] == len(run.tokens)
    assert passes > 40
    assert sentences >= set(SENTENCES[1:])
    assert [text for text in refused if not any(said in text for said in SENTENCES)] == []
    assert max(map(len, refused)) < 200  # none of them repeats what was typed


def check_rebuilt(tokens: Tokens, tokenizer: Tokenizer) -> None:
    """The tokens hold the text: all of it, or all that the tokenizer reads of it."""
    covered = {place for start, end in tokens.spans for place in range(start, end)}
    rest = {char for place, char in enumerate(tokens.text) if place not in covered}
    if isinstance(tokenizer, FastBpe):  # some control characters are no token of its vocabulary
        read = [b for b in tokens.text.encode() if tokenizer.id_of(bytes([b])) is not None]
        assert b"".join(tokens.raw) == bytes(read)
        assert {char for char in rest if tokenizer.id_of(char.encode()) is not None} == set()
    else:
        assert {unicodedata.category(char) for char in rest - {"\ufffd"}} <= LEFT_OUT
    starts = [start for start, end in tokens.spans if end > start]
    assert starts == sorted(starts)
