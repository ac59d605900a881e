"""The masking page: the article's numbers as shown, every control, bad input, links."""

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


def test_the_article_s_masks_and_dropout(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    shown, block = panels(site), NUMBERS["001_masking"]
    scores = np.array(block["scores"])
    np.testing.assert_allclose(
        shown["scores with this value"], np.where(triangle(9), scores, 0), **FOUR_DECIMALS
    )
    np.testing.assert_allclose(shown["weights"], block["softmax_masked_with_zero"], **FOUR_DECIMALS)
    for name in ("−∞ before the softmax", "divided by the row's sum"):
        np.testing.assert_allclose(
            shown[name], block["softmax_masked_with_minus_inf"], **FOUR_DECIMALS
        )
    ahead = np.where(triangle(9), 0, block["softmax_masked_with_zero"]).sum(1)
    # nine numbers rounded to six decimals are added up
    np.testing.assert_allclose(shown["leaked"][:, 0], ahead, atol=1e-5)
    assert number_of(site.metric[1].value) == pytest.approx(float(ahead.sum()), abs=5e-4)
    # two softmaxes of the same scores in another order: float32 rounding
    assert 0 <= number_of(site.metric[0].value) < 1e-6
    assert headers_by_title(site)["weights"]["rows"] == LABELS
    # zeroing breaks the sums, and dividing repairs them
    table = site.dataframe[0].value
    np.testing.assert_array_equal(
        shown["future set to 0"], np.where(triangle(9), shown["softmax over all"], 0)
    )
    sums = shown["future set to 0"].sum(1)
    assert (sums[:-1] < 0.99).all()
    np.testing.assert_allclose(table["sum after zeroing"], sums, atol=1e-6)
    for name in ("renormalized", "−∞ before"):
        np.testing.assert_allclose(table[name], 1, atol=1e-6)
    block = NUMBERS["001_dropout_seed123"]
    np.testing.assert_allclose(shown["before"], block["matrix"], **FOUR_DECIMALS)
    np.testing.assert_allclose(shown["after"], block["dropped"], **FOUR_DECIMALS)
    np.testing.assert_array_equal(shown["kept (1) or dropped (0)"], np.array(block["dropped"]) > 0)
    np.testing.assert_allclose(shown["row sums"][:, 0], shown["after"].sum(1), atol=1e-6)
    kept = int((np.array(block["dropped"]) > 0).sum())
    assert any(f"**{kept}** of 15" in e.value for e in site.markdown)


def test_the_triangle_grows_token_by_token(site: AppTest):
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
    # after the last token, from the first again
    assert site.select_slider("masking_tokens").value == 1
    (words,) = plain_tables(site)
    assert list(words["may see"]) == [" ".join(LABELS[: n + 1]) for n in range(9)]


def test_every_fill_and_what_it_lets_through(site: AppTest):
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


def test_draw_again_is_another_seed_in_the_address(site: AppTest):
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


def test_the_average_nears_the_weights(site: AppTest):
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
    # 45 cells of unlike size: their mean half-normal deviation scatters by some 20 %
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
    shown = panels(site)
    # what the page masks itself is what the model's own mask made of these scores
    np.testing.assert_allclose(
        shown["−∞ before the softmax"], record.weights[0, 8].numpy(), atol=1e-6
    )
    n = len(tokens.ids)
    filled = np.where(triangle(n), record.scores[0, 8].numpy(), 0)
    np.testing.assert_allclose(shown["scores with this value"], filled, rtol=1e-5, atol=1e-5)
    assert headers_by_title(site)["weights"]["rows"] == list(tokens.labels)
    assert number_of(site.metric[0].value) < 1e-6
    site.selectbox("masking_model").set_value(ENCODER).run()
    assert not site.exception
    assert headers_by_title(site)["weights"]["rows"][0] == "[CLS]"


def test_fewer_tokens_than_the_slider_had(site: AppTest):
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


def test_the_chart_keeps_its_scales():
    one, other = (numbers.average(np.array([[0.5, 0.2]]), p, 1) for p in (0.1, 0.9))
    first, second = (
        show.specification(charts.convergence, table, ink="#000000", paper="#ffffff")
        for table in (one, other)
    )
    assert len(first["layer"]) == 2
    assert first["layer"] == second["layer"]
    assert first["data"] != second["data"]
    assert all(row["deviation"] > 0 for row in first["data"]["values"])
