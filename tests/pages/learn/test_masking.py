"""The masking page: the article's numbers, all controls, invalid input and links."""

import math

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.masking import charts, numbers
from tests.helpers.apptest import number_of, open_whole_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.drawn_tensors import headers_by_title, panels
from tests.helpers.lectures import LECTURE_NUMBERS
from ui.charts import show

VIEW = "pages/learn/masking/page.py"
NUMBERS = LECTURE_NUMBERS
FOUR_DECIMALS = {"atol": 5e-5, "rtol": 0}
LABELS = NUMBERS["001_simple_attention_seed123"]["tokens"]


def triangle(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n), dtype=bool))


def softmax(scores: np.ndarray) -> np.ndarray:
    return torch.softmax(torch.tensor(scores), -1).numpy()


def test_article_masks_and_dropout(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    tensors, block = panels(site), NUMBERS["001_masking"]
    scores = np.array(block["scores"])
    np.testing.assert_allclose(
        tensors["scores with this value"], np.where(triangle(9), scores, 0), **FOUR_DECIMALS
    )
    np.testing.assert_allclose(
        tensors["weights"], block["softmax_masked_with_zero"], **FOUR_DECIMALS
    )
    for name in ("−∞ before the softmax", "divided by the row's sum"):
        np.testing.assert_allclose(
            tensors[name], block["softmax_masked_with_minus_inf"], **FOUR_DECIMALS
        )
    ahead = np.where(triangle(9), 0, block["softmax_masked_with_zero"]).sum(1)
    # This sums nine numbers that were rounded to six decimals.
    np.testing.assert_allclose(tensors["leaked"][:, 0], ahead, atol=1e-5)
    assert number_of(site.metric[1].value) == pytest.approx(float(ahead.sum()), abs=5e-4)
    # Two softmaxes sum the same scores in a different order, which differs by float32 rounding.
    assert 0 <= number_of(site.metric[0].value) < 1e-6
    assert headers_by_title(site)["weights"]["rows"] == LABELS
    # Zeroing breaks the row sums, and dividing by them repairs them.
    table = site.dataframe[0].value
    np.testing.assert_array_equal(
        tensors["future set to 0"], np.where(triangle(9), tensors["softmax over all"], 0)
    )
    sums = tensors["future set to 0"].sum(1)
    assert (sums[:-1] < 0.99).all()
    np.testing.assert_allclose(table["sum after zeroing"], sums, atol=1e-6)
    for name in ("renormalized", "−∞ before"):
        np.testing.assert_allclose(table[name], 1, atol=1e-6)
    block = NUMBERS["001_dropout_seed123"]
    np.testing.assert_allclose(tensors["before"], block["matrix"], **FOUR_DECIMALS)
    np.testing.assert_allclose(tensors["after"], block["dropped"], **FOUR_DECIMALS)
    np.testing.assert_array_equal(
        tensors["kept (1) or dropped (0)"], np.array(block["dropped"]) > 0
    )
    np.testing.assert_allclose(tensors["row sums"][:, 0], tensors["after"].sum(1), atol=1e-6)
    n_kept = int((np.array(block["dropped"]) > 0).sum())
    assert any(f"**{n_kept}** of 15" in e.value for e in site.markdown)


def test_triangle_grows_token_by_token(site: AppTest):
    open_whole_page(site, VIEW, masking_tokens="1")
    visible = []
    for count in range(1, 10):
        scores = panels(site)["scores with the mask"]
        assert scores.shape == (count, count)
        assert (np.isneginf(scores) == ~triangle(count)).all()
        visible.append(scores)
        site.button("masking_next").click().run()
    for before, after in zip(visible, visible[1:], strict=False):
        np.testing.assert_array_equal(after[:-1, :-1], before)
    # After the last token, playback restarts from the first.
    assert site.select_slider("masking_tokens").value == 1
    (words,) = plain_tables(site)
    assert list(words["may see"]) == [" ".join(LABELS[: n + 1]) for n in range(9)]


def test_every_fill_value(site: AppTest):
    open_whole_page(site, VIEW)
    scores = numbers.example("boy").values
    totals = []
    for fill in ("0", "-5", "-inf"):
        site.select_slider("masking_fill").set_value(fill).run()
        assert not site.exception
        weights = softmax(np.where(triangle(9), scores, np.float32(fill)))
        np.testing.assert_allclose(panels(site)["weights"], weights, atol=1e-6)
        leaked = np.where(triangle(9), 0, weights).sum(1)
        table = site.dataframe[1].value
        np.testing.assert_allclose(table["leaked"], leaked, atol=1e-6)
        assert list(table["keys ahead"]) == list(range(8, -1, -1))
        totals.append(number_of(site.metric[1].value))
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] == 0.0
    assert float(fill) == -math.inf


def test_draw_again_changes_the_seed_in_the_address(site: AppTest):
    open_whole_page(site, VIEW, masking_what="the masked weights")
    first = panels(site)
    np.testing.assert_array_equal(first["before"], first["−∞ before the softmax"])
    site.button("masking_redraw").click().run()
    assert site.number_input("masking_seed").value == 124
    assert float(site.query_params["masking_seed"]) == 124
    second = panels(site)
    assert (second["after"] != first["after"]).any()
    np.testing.assert_array_equal(second["before"], first["before"])
    torch.manual_seed(124)
    expected = torch.nn.functional.dropout(torch.tensor(second["before"]), 0.5)
    np.testing.assert_array_equal(second["after"], expected.numpy())


def test_average_approaches_the_weights(site: AppTest):
    p = 0.9
    open_whole_page(site, VIEW, masking_what="the masked weights")
    site.slider("masking_p").set_value(p).run()
    assert not site.exception
    table = site.dataframe[2].value
    assert list(table["draws"])[:4] == [1, 2, 5, 10]
    assert table["draws"].iloc[-1] == numbers.MAX_DRAWS
    weights = panels(site)["before"]
    mean = float(weights[weights > 0].mean())
    expected = math.sqrt(2 / math.pi * p / (1 - p) / numbers.MAX_DRAWS) * mean
    last = table.iloc[-1]
    assert last["mean expected, ∝ 1/√n"] == pytest.approx(expected, rel=1e-5)
    # The mean half-normal deviation of 45 cells of different size varies by about 20%.
    assert last["mean deviation"] == pytest.approx(expected, rel=0.6)
    assert last["largest deviation"] < table["largest deviation"].iloc[0] / 20


def test_scores_of_a_real_head(site: AppTest):
    text = "Two kettles sing loudly"
    open_whole_page(
        site,
        VIEW,
        masking_input="my sentence",
        masking_text=text,
        masking_layer="29",
        masking_head="8",
        masking_tokens="2",
    )
    assert not site.exception
    assert not site.toast
    model = bundled_model(DECODER)
    tokens = model.tokenizer.encode(text)
    with torch.inference_mode():
        record = model.core(torch.tensor([tokens.ids]), record=True).records[29]
    tensors = panels(site)
    # The page masks the scores itself. The result matches the model's own mask.
    np.testing.assert_allclose(
        tensors["−∞ before the softmax"], record.weights[0, 8].numpy(), atol=1e-6
    )
    n = len(tokens.ids)
    masked = np.where(triangle(n), record.scores[0, 8].numpy(), 0)
    np.testing.assert_allclose(tensors["scores with this value"], masked, rtol=1e-5, atol=1e-5)
    assert headers_by_title(site)["weights"]["rows"] == list(tokens.labels)
    assert number_of(site.metric[0].value) < 1e-6
    site.selectbox("masking_model").set_value(ENCODER).run()
    assert not site.exception
    assert headers_by_title(site)["weights"]["rows"][0] == "[CLS]"


def test_slider_adapts_to_fewer_tokens(site: AppTest):
    open_whole_page(site, VIEW)
    site.select_slider("masking_tokens").set_value(9).run()
    site.button_group("masking_input").set_value("six tokens").run()
    assert not site.exception
    assert site.select_slider("masking_tokens").value == 6
    site.button_group("masking_input").set_value("my sentence").run()
    site.text_input("masking_text").set_value("word").run()
    assert not site.exception
    assert panels(site)["scores with the mask"].shape == (1, 1)
    assert number_of(site.metric[1].value) == 0.0


def test_chart_keeps_its_scales():
    one, other = (numbers.average(np.array([[0.5, 0.2]]), p, 1) for p in (0.1, 0.9))
    first, second = (
        show.specification(charts.convergence, table, ink="#000000", paper="#ffffff")
        for table in (one, other)
    )
    assert len(first["layer"]) == 2
    assert first["layer"] == second["layer"]
    assert first["data"] != second["data"]
    assert all(row["deviation"] > 0 for row in first["data"]["values"])
