"""The Side by side page under AppTest: two aligned heads and their difference."""

import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import pretrained
from pages.compare.side_by_side import comparison, same_pair
from pages.compare.side_by_side.experiment import merge_tokens
from pretrained.tokenization.alignment import aligned, aligned_words
from pretrained.tokenization.tokens import Tokens
from serving import models, runs
from tests.helpers.apptest import SIDE, maps, messages, open_whole_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model, weights
from ui.text.formatting import percent
from ui.widgets import controls


def open_pair(site: AppTest, **query: str) -> None:
    """The page with an encoder and a decoder that split words differently."""
    names = {"a_model": ENCODER, "a_layer": "3", "a_head": "1"}
    names |= {"b_model": DECODER, "b_layer": "3", "b_head": "1"}
    by_name = {f"side_by_side_{name}": value for name, value in names.items()}
    open_whole_page(site, SIDE, **(by_name | query))


def tokens(name: str, text: str) -> Tokens:
    return bundled_model(name).tokenizer.encode(text)


def align_tokens(text: str) -> list[tuple[list[int], list[int]]]:
    """Encoder and decoder tokens between common boundaries, without the site's code.

    Works only for plain letters, single spaces and punctuation.
    """
    sides = [
        [
            (i, (start + (text[start] == " "), end))
            for i, (start, end) in enumerate(t.spans)
            if end > start
        ]
        for t in (tokens(ENCODER, text), tokens(DECODER, text))
    ]
    units: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(sides[0]):
        left, right = [sides[0][i]], [sides[1][j]]
        while left[-1][1][1] != right[-1][1][1]:
            if left[-1][1][1] < right[-1][1][1]:
                i += 1
                left.append(sides[0][i])
            else:
                j += 1
                right.append(sides[1][j])
        units.append(([n for n, _ in left], [n for n, _ in right]))
        i, j = i + 1, j + 1
    return units


def merge_groups(weights: np.ndarray, groups: list[list[int]]) -> np.ndarray:
    result = np.zeros((len(groups), len(groups)))
    for row, queries in enumerate(groups):
        for column, keys in enumerate(groups):
            for query in queries:
                for key in keys:
                    result[row, column] += weights[query, key] / len(queries)
    return result


def test_two_heads_share_one_scale(site: AppTest):
    text = "The animal sat before one lamp"
    query = {"text": text, "a_layer": "5", "a_head": "11", "b_layer": "29", "b_head": "8"}
    open_pair(site, **{f"side_by_side_{name}": value for name, value in query.items()})
    assert not site.exception
    assert not site.toast
    (left, first), (right, second), _ = maps(site)
    np.testing.assert_array_equal(first, weights(ENCODER, text, 5, 11))
    np.testing.assert_array_equal(second, weights(DECODER, text, 29, 8))
    assert not left["causal"]
    assert right["causal"]
    assert left["largest"] == right["largest"] == pytest.approx(max(first.max(), second.max()))
    # Used in the saved picture and in its file name.
    assert (left["about"]["name"], left["about"]["sentence"]) == (ENCODER, text)
    # Bidirectional isolates around the labels keep right-to-left text in its position.
    sentence = re.sub("[\u2068\u2069]", "", site.text[0].value)
    message = re.search("“(.+)” gives (.+) of its attention to “(.+)”", sentence)
    assert message is not None
    query_label, weight, key_label = message.groups()
    cell = left["labels"].index(query_label), left["labels"].index(key_label)
    assert weight == percent(first[cell])
    # The tables contain the same numbers.
    for values, table in zip((first, second), site.dataframe[1:], strict=True):
        frame = table.value
        assert (frame["weight"].diff().dropna() <= 0).all()
        actual = values[frame["query position"], frame["key position"]]
        np.testing.assert_array_equal(actual, frame["weight"])
    causal = site.dataframe[2].value
    assert (causal["key position"] <= causal["query position"]).all()
    site.selectbox("side_by_side_colours").set_value(controls.WHOLE).run()
    assert [header["largest"] for header, _ in maps(site)[:2]] == [1.0, 1.0]


def test_long_texts_use_a_scale_for_small_weights(site: AppTest):
    open_pair(site)
    assert [header["squareRoot"] for header, _ in maps(site)[:2]] == [False, False]
    site.text_input("side_by_side_text").set_value("word " * 60).run()
    assert [header["squareRoot"] for header, _ in maps(site)[:2]] == [True, True]
    site.selectbox("side_by_side_colours").set_value(controls.LINEAR).run()
    assert [header["squareRoot"] for header, _ in maps(site)[:2]] == [False, False]


def test_one_failing_model_keeps_the_other_picture(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    original = models.by_key

    def load_or_fail(where: tuple[str, str]) -> pretrained.Pretrained:
        if where[0] == ENCODER:
            raise OSError("![x](http://example.invalid/x.png) is damaged")
        return original(where)

    monkeypatch.setattr(models, "by_key", load_or_fail)
    open_pair(site, side_by_side_text="A sentence that no other test runs")
    ((header, _),) = maps(site)
    assert header["about"]["name"] == DECODER
    message = site.warning[0].value
    assert "![x](" not in message
    assert "://" not in message


def test_missing_layer_falls_back_to_the_last(site: AppTest):
    open_pair(site)
    site.select_slider("side_by_side_b_layer").set_value(29).run()
    site.selectbox("side_by_side_b_model").set_value(ENCODER).run()
    assert not site.exception
    assert site.select_slider("side_by_side_b_layer").value == 5
    assert maps(site)[1][0]["title"].endswith("L5H1")


def test_rejected_text_is_named_and_kept(site: AppTest):
    open_pair(site)
    # 270 words plus [CLS] and [SEP] are 16 tokens over the limit.
    for text, message in (("word " * 270, "16 over the limit of 256"), ("", "type a word")):
        site.text_input("side_by_side_text").set_value(text).run()
        assert not site.exception
        assert any(message in m for m in messages(site))
        assert site.text_input("side_by_side_text").value == text


TEXT = "The lighthouse keeper's unfathomable daydreams didn't fade."


def test_left_minus_right_over_shared_units(site: AppTest):
    open_pair(site, side_by_side_text=TEXT, side_by_side_a_layer="2", side_by_side_a_head="5")
    assert not site.exception
    *_, (header, values) = maps(site)
    units = align_tokens(TEXT)
    assert any(len(left) > 1 for left, _ in units)
    left = merge_groups(weights(ENCODER, TEXT, 2, 5), [unit[0] for unit in units])
    right = merge_groups(weights(DECODER, TEXT, 3, 1), [unit[1] for unit in units])
    assert values.shape == (len(units), len(units))
    ahead = np.triu(np.ones(values.shape, dtype=bool), 1)
    assert np.isnan(values[ahead]).all()
    np.testing.assert_allclose(values[~ahead], (left - right)[~ahead], atol=1e-6)
    assert header["diverging"]
    assert header["largest"] == pytest.approx(float(np.nanmax(np.abs(values))))
    assert header["lowest"] == -header["largest"]
    message = " ".join(element.value for element in site.text)
    special = weights(ENCODER, TEXT, 2, 5)[:, [0, -1]]
    alone = sum(special[unit[0]].sum(1).mean() for unit in units) / len(units)
    assert f"gives them {percent(alone)} " in message
    beyond = left[ahead].sum() / len(units)
    assert f"a row gives {percent(beyond)} of its weight" in message
    # The table contains the same numbers.
    table = site.dataframe[0].value
    assert len(table) == (~ahead).sum()
    actual = values[table["query unit"], table["key unit"]]
    np.testing.assert_array_equal(actual, table["left minus right"])
    np.testing.assert_allclose(table["left"] - table["right"], actual, atol=1e-7)
    assert (table["left minus right"].abs().diff().dropna() <= 0).all()


def test_renormalized_rows_sum_to_one_on_both_sides(site: AppTest):
    open_pair(site, side_by_side_text=TEXT, side_by_side_rows="true")
    table = site.dataframe[0].value
    sums = table.groupby("query unit")[["left", "right"]].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    units = align_tokens(TEXT)
    left = np.tril(merge_groups(weights(ENCODER, TEXT, 3, 1), [unit[0] for unit in units]))
    left /= left.sum(1, keepdims=True)
    np.testing.assert_allclose(
        table["left"], left[table["query unit"], table["key unit"]], atol=1e-6
    )


def test_merged_words_rows_sum_to_one(site: AppTest):
    open_pair(site, side_by_side_text=TEXT, side_by_side_view="words")
    (left, first), (right, second), (signed, _) = maps(site)
    words = ["The", "lighthouse", "keeper's", "unfathomable", "daydreams", "didn't", "fade", "."]
    assert left["labels"] == ["[CLS]", *words, "[SEP]"]
    assert right["labels"] == signed["labels"] == words
    for values in (first, second):
        np.testing.assert_allclose(values.sum(1), 1.0, atol=1e-5)
    assert left["rowUnits"] == [-1, *range(8), -1]
    assert right["columnUnits"] == signed["rowUnits"] == list(range(8))
    site.radio("side_by_side_view").set_value("shared units").run()
    assert maps(site)[1][0]["labels"] == maps(site)[2][0]["labels"] != words


def test_head_equals_itself(site: AppTest):
    open_pair(site, side_by_side_b_model=ENCODER)
    (left, _), (_, _), (header, values) = maps(site)
    assert values.shape[0] == len(left["labels"])  # Here, [CLS] and [SEP] are aligned too.
    assert not values.any()
    assert header["largest"] == 1.0


def test_two_decoder_heads_mask_the_same_half(site: AppTest):
    open_pair(site, side_by_side_a_model=DECODER, side_by_side_a_layer="7")
    *_, (_, values) = maps(site)
    expected = weights(DECODER, controls.ANIMAL, 7, 1) - weights(DECODER, controls.ANIMAL, 3, 1)
    lower = np.tril(np.ones_like(values, dtype=bool))
    np.testing.assert_allclose(values[lower], expected[lower], atol=1e-6)
    assert np.isnan(values[~lower]).all()


def test_different_sentence_on_the_right(site: AppTest):
    open_pair(site, side_by_side_two="true", side_by_side_b_model=ENCODER)
    assert site.text_input("side_by_side_text_b").value.endswith("too wide")
    *_, (header, values) = maps(site)
    words = "[CLS] The animal didn ' t cross the street because it was too [SEP]"
    assert header["labels"] == words.split()
    right = controls.ANIMAL.replace("tired", "wide")
    expected = weights(ENCODER, controls.ANIMAL, 3, 1) - weights(ENCODER, right, 3, 1)
    positions = [n for n in range(15) if n != 13]
    np.testing.assert_allclose(values, expected[positions][:, positions], atol=1e-6)
    # Without a common token, there is nothing to subtract.
    site.text_input("side_by_side_text").set_value("one")
    site.text_input("side_by_side_text_b").set_value("two")
    site.selectbox("side_by_side_a_model").set_value(DECODER)
    site.selectbox("side_by_side_b_model").set_value(DECODER).run()
    assert not site.exception
    assert len(maps(site)) == 2


def test_core_matches_reference_model(site: AppTest):
    text = "Five boats, one lamp"
    open_pair(
        site,
        side_by_side_text=text,
        side_by_side_reference="true",
        side_by_side_b_model=ENCODER,
        side_by_side_b_layer="5",
    )
    assert not site.exception
    # The model and the text are the same, so there is only one chart.
    (chart,) = site.get("vega_lite_chart")
    model = bundled_model(ENCODER)
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.encode(text).ids])
        theirs = model.reference(ids, output_attentions=True, output_hidden_states=True)
        ours = model.core(ids, record=True)
    table = plain_tables(site)[-1]
    two_digits = 0.05  # Half a unit of the digits that the table shows.
    for layer in range(6):
        row = table.iloc[layer]
        difference = (ours.records[layer].weights - theirs.attentions[layer]).abs().max()
        assert row["max |Δ weights|"] == pytest.approx(float(difference), rel=two_digits)
        difference = (ours.hidden_states[layer + 1] - theirs.hidden_states[layer + 1]).abs().max()
        assert row["max |Δ hidden|"] == pytest.approx(float(difference), rel=two_digits)


def test_identical_tokens_are_aligned_one_to_one():
    """A four-byte character is four tokens in both models: two cells, not two blocks."""
    left, right = (runs.run(name, "a 😀 b c") for name in ("bert-novels", "gpt2-novels"))
    assert left.tokens.labels == right.tokens.labels
    for cell in ((3, 4), (5, 1)):
        pair = same_pair.partner((left, right), cell)
        assert pair is not None
        assert pair.is_one_cell
        assert pair.left == pair.right == tuple((token,) for token in cell)
        assert pair.labels == tuple(left.tokens.labels[token] for token in cell)
        assert same_pair.right_cell((left, right), cell) == cell


@pytest.mark.parametrize("view", comparison.VIEWS)
def test_both_sides_show_the_same_pair(view: str):
    both = left, right = [
        runs.run(name, "Tokenization matters unbelievably") for name in (DECODER, ENCODER)
    ]
    units = (aligned_words if view == "words" else aligned)(left.tokens, right.tokens).units
    query, key = max(units, key=lambda unit: abs(len(unit.a) - len(unit.b))), units[0]
    pair = same_pair.partner(both, (query.a[-1], key.a[0]), view)
    assert pair is not None
    assert (pair.left, pair.right) == ((query.a, key.a), (query.b, key.b))
    assert not pair.is_one_cell
    result = same_pair.unit_weights(right, query.b, key.b)
    strongest = same_pair.strongest_head(result)
    assert result[strongest.layer, strongest.head] == result.max()
    for run, (queries, keys) in zip(both, (pair.left, pair.right), strict=True):
        merge_groups = merge_tokens(run.tensors.weights, [queries], [keys])[..., 0, 0]
        result = same_pair.unit_weights(run, queries, keys)
        np.testing.assert_allclose(result, merge_groups, rtol=1e-5)


def test_words_split_differently_are_compared_whole():
    """Both models split the word into equally many tokens at different positions."""
    both = [runs.run(name, "The embeddings were here") for name in (ENCODER, "gpt2-novels")]
    units = aligned(both[0].tokens, both[1].tokens).units
    word = max(units, key=lambda unit: len(unit.a))
    assert len(word.a) == len(word.b) > 1
    pair = same_pair.partner(both, (word.a[1], word.a[0]))
    assert pair is not None
    assert (pair.left, pair.right) == ((word.a, word.a), (word.b, word.b))
