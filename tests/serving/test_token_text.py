"""Test how pages display tokens: partial characters as bytes, and growing texts."""

from collections.abc import Iterator

import pytest

from pages.generate.generate.job import GenerationJob
from pretrained.tokenization import gpt2 as gpt2_bpe
from pretrained.tokenization.tokens import Tokenizer
from serving import models, token_text
from serving.backend import router as backend
from serving.race import CacheSize, Event, RaceRequest, RaceStep
from serving.step_times import StepTime
from tests.helpers.bundled_models import DECODER, ENCODER, FIRST_GPT2, bundled_model
from tests.helpers.texts import TEXTS


@pytest.fixture(params=["gpt2", FIRST_GPT2, DECODER, ENCODER])
def tokenizer(request: pytest.FixtureRequest, bundled_weights: None) -> Tokenizer:
    return gpt2_bpe.gpt2() if request.param == "gpt2" else bundled_model(request.param).tokenizer


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_of_a_growing_text(tokenizer: Tokenizer, text: str):
    ids = tokenizer.encode(text).ids
    pieces = token_text.pieces(tokenizer, ids)
    # a space is only displayed where it matters
    for piece, token_id in zip(pieces, ids, strict=True):
        assert token_text.piece(tokenizer, token_id) in (piece, piece.removeprefix("␣"))
    assert not any("\ufffd" in piece for piece in pieces)
    whole = {piece: tokenizer.decode_bytes([i]) for i, piece in zip(ids, pieces, strict=True)}
    # no piece is truncated, so all of its bytes are there
    if all(len(piece) < 24 for piece in pieces):
        assert len(whole) == len({tokenizer.decode_bytes([i]) for i in ids})
    texts = [token_text.decode_partial(tokenizer, ids[:n]) for n in range(len(ids) + 1)]
    assert texts[-1] == tokenizer.decode(ids)
    assert not any("\ufffd" in displayed for displayed in texts)
    if tokenizer.cls_id is None:  # WordPiece rejoins the words with every new token
        for shorter, longer in zip(texts, texts[1:], strict=False):
            assert longer.startswith(shorter)


@pytest.mark.parametrize("text", ["I like 🤗 pizza", "👩\u200d👧 👍🏽 “é”"])
def test_generation_shows_bytes_and_whole_characters(
    text: str, bundled_weights: None, monkeypatch: pytest.MonkeyPatch
):
    tokenizer = bundled_model(FIRST_GPT2).tokenizer
    ids = tokenizer.encode(text).ids

    def race(*_: object) -> Iterator[Event]:
        for n, token_id in enumerate(ids):
            step = StepTime("decode", token_id, -1.0, 0.01, 1, n, n, 100)
            yield RaceStep(step, step, 0.0, CacheSize(1, 1))

    monkeypatch.setattr(models, "get", bundled_model)
    monkeypatch.setattr(backend, "race", race)
    job = GenerationJob(RaceRequest(FIRST_GPT2, "Once", len(ids)))
    job.work()
    assert list(job.pieces(job.cached)) == list(token_text.pieces(tokenizer, ids))
    assert job.text(job.cached) == text
    for n, end in enumerate(job.cached.text_lengths, start=1):
        so_far = tokenizer.decode_bytes(ids[:n])
        assert text[:end] == so_far.decode("utf-8", "ignore")
