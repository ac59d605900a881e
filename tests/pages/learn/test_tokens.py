"""The Tokens page: tables, tokenization steps of a word, token vectors and links."""

import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.tokens import embeddings, splits, tokenizers
from pretrained.tokenization import gpt2
from serving.limits import MAX_TOKENIZER_CHARACTERS
from tests.helpers.apptest import messages, number_of, open_whole_page
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.drawn_tensors import drawn_panels

VIEW = "pages/learn/tokens/page.py"


def rows(site: AppTest) -> dict[str, dict[str, Any]]:
    """Every row of chips, by title."""
    results = {}
    for element in site.get("bidi_component"):
        data = element.proto.bytes
        if data[:1] == b"{":
            row = json.loads(data)
            results[row["title"]] = row
    return results


def panels(site: AppTest) -> dict[str, np.ndarray]:
    """The embedding vectors, by name."""
    return {name: tensor.values.ravel() for name, tensor in drawn_panels(site).items()}


def test_lecture_sentence_ids(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    table = site.dataframe[0].value
    assert table["id"].tolist() == [464, 1306, 1110, 318, 6016, 290, 27737]
    assert table["token"].tolist()[1] == "␣next"
    row = rows(site)["GPT-2 (BPE): 7 tokens"]
    assert [chip[0] for chip in row["chips"]] == table["token"].tolist()
    assert row["chips"][6][1] == "token 6: id 27737, characters 26 to 32, bytes 20 73 75 6e 6e 79"
    # MiniLM adds two special tokens.
    assert site.dataframe[2].value["token"].tolist()[::8] == ["[CLS]", "[SEP]"]
    assert site.table[0].value["special tokens"].tolist() == [0, 0, 2]


@pytest.mark.parametrize("text", [" ", "\U0010ffff" * 40])
def test_tables_match_the_tokenizers(site: AppTest, text: str):
    open_whole_page(site, VIEW, tokens_text=text)
    check_tables(site, text)


def test_presets_fill_the_text_box_and_the_tables(site: AppTest):
    open_whole_page(site, VIEW)
    for name, text in tokenizers.PRESETS.items():
        site.menu_button("tokens_example").click(name).run()
        assert site.text_area("tokens_text").value == text
        check_tables(site, text)


def check_tables(site: AppTest, text: str) -> None:
    assert not site.exception
    own = [gpt2.gpt2(), *(bundled_model(n).tokenizer for n in (DECODER, ENCODER))]
    for frame, tokenizer in zip(site.dataframe, own, strict=False):
        tokens = tokenizer.encode(text)
        assert frame.value["id"].tolist() == list(tokens.ids)
        spans = zip(frame.value["start"], frame.value["end"], strict=True)
        assert list(spans) == list(tokens.spans)
        data = [bytes.fromhex(cell) for cell in frame.value["bytes"]]
        if tokens.raw:
            assert b"".join(data) == text.encode()
        else:
            assert data == [text[start:end].encode() for start, end in tokens.spans]


def test_empty_text(site: AppTest):
    open_whole_page(site, VIEW)
    site.text_area("tokens_text").set_value("").run()
    assert not site.exception
    assert site.table[0].value["tokens"].tolist() == [0, 0, 2]
    assert site.table[0].value["tokens per word"].tolist() == ["–", "–", "–"]
    # A decoder has nothing to embed.
    site.selectbox("tokens_model").set_value(DECODER).run()
    assert not site.exception
    assert messages(site)


def test_rejects_long_text(site: AppTest):
    text = "word " * MAX_TOKENIZER_CHARACTERS
    with pytest.raises(ValueError, match=f"limit of {MAX_TOKENIZER_CHARACTERS}"):
        tokenizers.tokenize(text)
    open_whole_page(site, VIEW, tokens_text=text)
    assert not site.exception
    assert len(site.get("bidi_component")) > 3
    site.text_area("tokens_text").set_value("a b " * 100).run()
    assert not site.exception
    assert messages(site)  # A message replaces the vectors.


@pytest.mark.parametrize("method", tokenizers.METHODS)
@pytest.mark.parametrize("text", ["unbelievably Zürich 2024", tokenizers.PRESETS["Emoji"]])
def test_steps_of_every_word_end_with_its_tokens(method: str, text: str):
    reading = tokenizers.tokenize(text).by_method[method]
    ids = []
    for word in splits.words(reading):
        cut = splits.split_word(reading, word)
        assert cut.same
        ids += cut.ids
        assert len(cut.table) in (len(cut.steps), len(cut.steps) - 1)
    tokens = reading.tokens
    assert ids == [i for i, s in zip(tokens.ids, tokens.special, strict=True) if not s]


def test_steps_of_sunny(site: AppTest):
    open_whole_page(site, VIEW, tokens_step="5")
    row = rows(site)["Parts"]
    assert [chip[0] for chip in row["chips"]] == ["␣sunny"]
    assert "27,481" in row["hint"]
    assert any("27737" in element.value for element in site.markdown)
    site.select_slider("tokens_step").set_value(2).run()
    row = rows(site)["Parts"]
    assert [chip[0] for chip in row["chips"]] == ["␣s", "un", "n", "y"]
    assert [chip[3] for chip in row["chips"]] == [False, True, False, False]
    # A shorter word has fewer steps, so the selection falls back to the last one.
    site.select_slider("tokens_step").set_value(5)
    site.select_slider("tokens_word").set_value(3).run()
    assert not site.exception
    reading = tokenizers.tokenize(tokenizers.NEXT_DAY).by_method[tokenizers.GPT2]
    assert (
        site.select_slider("tokens_step").value == len(splits.split_word(reading, " is").steps) - 1
    )


def test_word_too_long_to_step_through(site: AppTest):
    open_whole_page(site, VIEW, tokens_word="0")
    site.text_area("tokens_text").set_value("x" * 200).run()
    assert not site.exception
    (message,) = messages(site)
    assert "200" in message


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_vectors_match_the_weights(site: AppTest, name: str):
    open_whole_page(site, VIEW, tokens_model=name, tokens_place="5")
    assert not site.exception
    model = bundled_model(name)
    ids = model.tokenizer.encode(tokenizers.NEXT_DAY).ids
    tensors = panels(site)
    n = embeddings.COLUMNS
    with torch.inference_mode():
        embedded = model.core(torch.tensor([ids]), record=True).hidden_states[0][0, 5, :n].numpy()
    token = tensors["token embedding"]
    if name == DECODER:
        assert set(tensors) == {"token embedding", "= sum"}
        np.testing.assert_array_equal(token, embedded)
    else:
        position = model.core.positions[5, :n].detach().numpy()
        np.testing.assert_array_equal(tensors["+ position embedding"], position)
        total = token + tensors["+ segment embedding"] + position
        # Float32 sums in a different order differ by rounding.
        np.testing.assert_allclose(tensors["= sum"], total, rtol=0, atol=1e-7)
        np.testing.assert_array_equal(tensors["after LayerNorm: enters layer 0"], embedded)
    (sentence,) = [e.value for e in site.markdown if "over all tokens and columns" in e.value]
    assert number_of(re.findall(r"\*\*(.+?)\*\*", sentence)[0]) < 1e-5


def test_missing_tokenizers_show_message(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    def missing(method: str) -> None:
        raise LookupError(f"nothing for {method}")

    monkeypatch.setattr(tokenizers, "tokenizer_of", missing)
    open_whole_page(site, VIEW)
    assert not site.exception
    assert len(messages(site)) == 3
