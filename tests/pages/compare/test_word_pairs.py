"""The Word pairs page: the lectures' claims, the search and the baseline."""

from functools import cache

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import pretrained
from pages.compare.word_pairs import downloads, questions
from pages.compare.word_pairs import search as word_pairs
from serving import runs
from tests.helpers.apptest import messages, open_whole_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from ui.text.formatting import percent
from ui.widgets import controls

PAGE = "pages/compare/word_pairs/page.py"


@cache
def weights(name: str, text: str) -> tuple[np.ndarray, pretrained.Tokens]:
    """Weights (layers, heads, T, S), computed without the site's code."""
    model = bundled_model(name)
    tokens = model.tokenizer.encode(text)
    with torch.inference_mode():
        records = model.core(torch.tensor([tokens.ids]), record=True).records
    return torch.cat([record.weights for record in records]).numpy(), tokens


def tokens_of(tokens: pretrained.Tokens, text: str) -> list[int]:
    """Tokens that overlap the first occurrence of a text."""
    start = tokens.text.index(text)
    spans = enumerate(tokens.spans)
    return [i for i, (left, right) in spans if left < start + len(text) and start < right]


def search(name: str, text: str, *words: str) -> word_pairs.Search:
    run = runs.run(name, text)
    result = word_pairs.units(run.tokens)
    labels = [unit.label for unit in result]
    return word_pairs.search(run, result, *(labels.index(word) for word in words))


def open_word_pairs(site: AppTest, **query: str) -> None:
    open_whole_page(site, PAGE, **{f"word_pairs_{name}": value for name, value in query.items()})


def selected_words(site: AppTest) -> list[str]:
    """The selected query, A and B."""
    return [site.selectbox(f"word_pairs_{name}").value for name in ("query", "a", "b")]


def metrics(site: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in site.metric}


def test_lecture_heads_rank_first(site: AppTest):
    open_whole_page(site, PAGE)
    assert not site.exception
    table = plain_tables(site)[0]
    top = [(int(row["layer"]), int(row["head"])) for _, row in table.head(2).iterrows()]
    assert (3, 1) in top  # This head puts 0.64 of the attention of `it` on `animal`.
    row = table[(table["layer"] == 3) & (table["head"] == 1)].iloc[0]
    assert row["weight on A"] == pytest.approx(0.640, abs=0.0005)
    assert row[word_pairs.RANK] == 1
    site.selectbox("word_pairs_a").set_value("tired").run()
    first = plain_tables(site)[0].iloc[0]
    assert (first["layer"], first["head"]) == (2, 1)
    assert first["weight on A"] == pytest.approx(0.694, abs=0.0005)


def test_numbers_match_the_tensors(site: AppTest):
    """Use words of several tokens: "didn't" is three, one of them in the query."""
    open_word_pairs(site, query="didn't", a="street", b="animal")
    w, tokens = weights(ENCODER, controls.ANIMAL)
    query, a, b = (tokens_of(tokens, word) for word in ("didn't", "street", "animal"))
    assert len(query) == 3
    # Sum over keys, average over queries.
    on_a, on_b = (w[:, :, query][..., key].sum(-1).mean(-1) for key in (a, b))
    table = plain_tables(site)[0]
    for _, row in table.iterrows():
        layer, head = int(row["layer"]), int(row["head"])
        assert row["weight on A"] == pytest.approx(on_a[layer, head], abs=1e-5)
        assert row["weight on B"] == pytest.approx(on_b[layer, head], abs=1e-5)
    result = metrics(site)
    assert result["Largest weight on A"] == percent(on_a.max())
    difference = on_a - on_b
    margin = word_pairs.MARGIN
    counts = (difference >= margin).sum(), (difference <= -margin).sum()
    assert result["Heads preferring A, B"] == "{}, {}".format(*counts)


def test_key_tokens_are_summed():
    result = search(ENCODER, controls.ANIMAL, "it", "didn't", "animal")
    w, tokens = weights(ENCODER, controls.ANIMAL)
    query, key = tokens.pieces.index("it"), tokens_of(tokens, "didn't")
    np.testing.assert_allclose(result.weights, w[:, :, query][..., key].sum(-1), atol=1e-5)
    run = runs.run(ENCODER, controls.ANIMAL)
    lengths = (w * run.value_norms[:, :, None, :])[:, :, query][..., key].sum(-1)
    np.testing.assert_allclose(result.contributions, lengths, atol=1e-4)


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_ranks_match_the_download(name: str):
    """Recompute ranks from the file alone. It lists the tokens of each word."""
    result = search(name, controls.ANIMAL, "tired", "animal", "street")
    run = runs.run(name, controls.ANIMAL)
    file = downloads.arrays(run, result)
    assert len(file["word_of_token"]) == len(run.tokens) > len(file["words"])
    table = word_pairs.table(result)
    for _, row in table.iterrows():
        layer, head = int(row["layer"]), int(row["head"])
        per_token = file["weights"][layer, head][file["query_tokens"]].mean(0)
        per_word = np.bincount(file["word_of_token"], per_token)
        word = file["word_of_token"][file["a_tokens"][0]]
        assert file["words"][word] == "animal"
        assert row["weight on A"] == pytest.approx(per_word[word], abs=1e-5)
        # Two words may differ by less than the rounding error of the sums.
        larger = np.delete(per_word, word) - per_word[word]
        assert 1 + (larger > 1e-6).sum() <= row[word_pairs.RANK] <= 1 + (larger > -1e-6).sum()
        assert file["rank_of_a_among_words"][layer, head] == row[word_pairs.RANK]


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_baseline_repeats_the_search_for_every_other_pair(name: str):
    text = controls.GOVERNMENT
    result = search(name, text, "speech", "regulate", "free")
    w, tokens = weights(name, text)
    words = ["The", "government", "should", "regulate", "free", "speech", "."]
    places = [tokens_of(tokens, word) for word in words]
    largest = [
        max(
            float(w[layer, head][np.ix_(query, key)].sum(1).mean())
            for layer in range(w.shape[0])
            for head in range(w.shape[1])
        )
        for i, query in enumerate(places)
        for j, key in enumerate(places)
        if i != j and (i, j) != (5, 3) and (name == ENCODER or j < i)
    ]
    assert len(result.other_pairs) == (41 if name == ENCODER else 20)
    np.testing.assert_allclose(sorted(result.other_pairs), sorted(largest), atol=1e-5)
    assert result.n_smaller == sum(value < result.weights.max() for value in largest)


def test_decoder_offers_to_swap_a_later_word(site: AppTest):
    link = {"query": "woman", "a": "brush", "b": "portrait"}
    open_word_pairs(site, text=controls.ARTIST, model=DECODER, **link)
    assert not site.toast
    assert messages(site)
    assert [metric.value for metric in site.metric[:2]] == ["0%", f"0 of {30 * 9}"]
    assert not plain_tables(site)  # If all weights are zero, no head is the strongest.
    assert not site.text
    site.button[0].click().run()
    assert not messages(site)
    assert site.selectbox("word_pairs_query").value == "brush"
    assert site.selectbox("word_pairs_a").value == "woman"
    first = plain_tables(site)[0].iloc[0]
    assert (first["layer"], first["head"]) == (27, 8)


def test_note_for_later_second_word(site: AppTest):
    link = {"query": "regulate", "a": "government", "b": "speech"}
    open_word_pairs(site, text=controls.GOVERNMENT, model=DECODER, **link)
    assert messages(site)
    assert (plain_tables(site)[0]["weight on B"] == 0).all()


def test_presets_only_use_words_of_their_sentence():
    for question in questions.QUESTIONS.values():
        for name in (ENCODER, DECODER):
            tokens = runs.run(name, question.text).tokens
            labels = [unit.label for unit in word_pairs.units(tokens) if unit.is_word]
            assert {question.query, question.key, question.other} <= set(labels)


def test_too_few_words_and_hostile_text(site: AppTest):
    open_whole_page(site, PAGE)
    for text in ("", "word", " \u2003 "):
        site.text_input("word_pairs_text").set_value(text).run()
        assert not site.exception
        assert any("two words" in message for message in messages(site))
        assert site.text_input("word_pairs_text").value == text
    for name in (ENCODER, DECODER):
        site.selectbox("word_pairs_model").set_value(name)
        for text in (
            "<img src=x onerror=alert(1)> **bold** ![i](http://example.invalid/x.png)",
            "naïve 👩‍👧 日本語 \x00 \u202e rtl don't",
            "a a a a a",
        ):
            site.text_input("word_pairs_text").set_value(text).run()
            assert not site.exception
            assert site.metric or messages(site)
            for element in [*site.markdown, *site.warning]:
                assert "onerror=alert" not in element.value
                assert "://" not in element.value


def test_word_missing_from_the_new_sentence_is_dropped(site: AppTest):
    open_word_pairs(site, query="it", a="animal")
    site.text_input("word_pairs_text").set_value("seven small ships").run()
    assert not site.exception
    query, *looked_at = selected_words(site)
    assert query == "ships"
    assert set(looked_at) == {"seven", "small"}


def test_default_words_are_content_words_before_the_pronoun(site: AppTest):
    text = "The trophy did not fit in the suitcase because it was too big"
    open_word_pairs(site, text=text)
    query, *looked_at = selected_words(site)
    assert query == "it"
    assert set(looked_at) <= {"trophy", "fit", "suitcase"}
