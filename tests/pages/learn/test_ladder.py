"""The ladder page: the lectures' numbers, all controls, invalid input and links."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.ladder import stages
from pages.learn.ladder.experiment.ladder import run_rung
from tests.helpers.apptest import code, messages, number_of, open_whole_page
from tests.helpers.bundled_models import ENCODER, bundled_model
from tests.helpers.drawn_tensors import headers_by_title, panels
from tests.helpers.lectures import LECTURE_NUMBERS

VIEW = "pages/learn/ladder/page.py"
NUMBERS = LECTURE_NUMBERS
FOUR_DECIMALS = {"atol": 5e-5, "rtol": 0}


def choose(site: AppTest, rung: str, kind: str = "six tokens") -> None:
    site.button_group("ladder_rung").set_value(rung)
    site.selectbox("ladder_input").set_value(kind).run()
    assert not site.exception


def check(site: AppTest) -> str:
    message = [element.value for element in site.markdown if "largest difference" in element.value]
    return str(re.findall(r"\*\*(.+?)\*\*", message[0])[-1])


@pytest.mark.parametrize(
    ("rung", "kind", "block", "names"),
    [
        ("simplified", "six tokens", "002_simplified_self_attention",
         ("x", "scores", "weights", "context")),
        ("v1", "six tokens", "002_self_attention_v1_seed123",
         ("x", "scores", "weights", "context")),
        ("v2", "six tokens", "002_self_attention_v2_seed789",
         ("x", "W_query", "W_key", "W_value", "weights", "context")),
        ("v2", "nine tokens", "001_simple_attention_seed123",
         ("x", "W_query", "W_key", "W_value", "context")),
    ],
)  # fmt: skip
def test_page_shows_the_lecture_numbers(
    site: AppTest, rung: str, kind: str, block: str, names: tuple[str, ...]
):
    open_whole_page(site, VIEW)
    choose(site, rung, kind)
    tensors = panels(site)
    for name in names:
        np.testing.assert_allclose(tensors[name], NUMBERS[block][name], **FOUR_DECIMALS)
    assert headers_by_title(site)["x"]["rows"] == list(
        NUMBERS[block].get("tokens", stages.example("journey").labels)
    )


def test_article_wrapper_and_weight_splits(site: AppTest):
    open_whole_page(site, VIEW, ladder_causal="false")
    choose(site, "wrapper", "nine tokens")
    site.toggle("ladder_causal").set_value(False).run()
    expected = NUMBERS["001_multi_head_wrapper_seed123"]["context"]
    np.testing.assert_allclose(panels(site)["output"], expected, **FOUR_DECIMALS)
    choose(site, "splits", "nine tokens")
    block = NUMBERS["001_multi_head_fused_seed123"]
    for causal, key in ((False, "output"), (True, "output_causal")):
        site.toggle("ladder_causal").set_value(causal).run()
        np.testing.assert_allclose(panels(site)["output"], block[key], **FOUR_DECIMALS)
        assert ("masked" in panels(site)) == causal


def test_every_rung_shows_its_tensors_code_and_check(site: AppTest):
    open_whole_page(site, VIEW)
    for rung in stages.RUNGS:
        choose(site, rung, "nine tokens")
        tensors = panels(site)
        # Both sides are float32 sums of the same few products.
        assert check(site) == "exactly 0" or number_of(check(site)) < 1e-6
        q, k, v = (tensors[name] for name in "qkv")
        scores = q @ np.swapaxes(k, -1, -2)
        np.testing.assert_allclose(tensors["scores"], scores, atol=1e-6)
        np.testing.assert_allclose(tensors["context"], tensors["weights"] @ v, atol=1e-6)
        if rung != "dropout":
            np.testing.assert_allclose(tensors["weights"].sum(-1), 1, atol=1e-6)
        if "masked" in tensors:
            assert (
                np.isneginf(tensors["masked"]) == np.triu(np.ones((9, 9)), 1).astype(bool)
            ).all()
        assert any(stages.CLASSES[rung] in text for text in code(site))


def test_dropout_depends_on_the_seed(site: AppTest):
    open_whole_page(site, VIEW)
    choose(site, "dropout")
    first = panels(site)["weights"]
    np.testing.assert_allclose(
        first, np.where(first == 0, 0, 2 * panels(site)["attention"]), atol=1e-6
    )
    site.number_input("ladder_draw").set_value(7).run()
    assert (panels(site)["weights"] != first).any()
    site.slider("ladder_p").set_value(0.0).run()
    np.testing.assert_array_equal(panels(site)["weights"], panels(site)["attention"])


def test_score_matches_hand_calculation(site: AppTest):
    open_whole_page(site, VIEW)
    choose(site, "v1")
    site.select_slider("ladder_i").set_value(5)
    site.select_slider("ladder_j").set_value(2).run()
    tensors = panels(site)
    terms = site.dataframe[1].value
    np.testing.assert_allclose(terms["product"], tensors["q"][5] * tensors["k"][2], atol=1e-7)
    cell = float(tensors["scores"][5, 2])
    assert terms["product"].sum() == pytest.approx(cell, abs=1e-6)
    text = " ".join(element.value for element in site.markdown)
    back = float(tensors["scores"][2, 5])
    for number in (f"{cell:.6f}", f"{cell:.4f}", f"{back:.4f}"):
        assert f"**{number}**".replace("-", "−") in text  # The page uses a real minus sign.
    assert cell != pytest.approx(back, abs=1e-3)
    # The matrix between the two tokens, from the matrices on the page.
    np.testing.assert_allclose(tensors["M"], tensors["W_query"] @ tensors["W_key"].T, atol=1e-6)
    assert headers_by_title(site)["scores"]["mark"] == [[5, 2]]
    largest = float(np.abs(tensors["M"] - tensors["M"].T).max())
    assert f"**{largest:.4f}**" in text


@pytest.mark.parametrize("rung", ["simplified", "wrapper"])
def test_query_is_shown_as_a_search(site: AppTest, rung: str):
    open_whole_page(site, VIEW)
    choose(site, rung)
    site.select_slider("ladder_i").set_value(2).run()
    tensors, result = panels(site), site.dataframe[0].value
    # Use the only head, or head 0.
    weights, scores, values = (
        tensors[name].reshape(-1, *tensors[name].shape[-2:])[0]
        for name in ("weights", "scores", "v")
    )
    assert sorted(result["position"]) == list(range(6 if rung == "simplified" else 3))
    assert (result["weight"].diff().dropna() <= 0).all()
    assert (result["score"].diff().dropna() <= 0).all()  # Masked keys aren't among the results.
    np.testing.assert_array_equal(result["weight"], weights[2][result["position"]])
    np.testing.assert_array_equal(result["score"], scores[2][result["position"]])
    result_values = np.array([[float(v) for v in cell.split()] for cell in result["value"]])
    np.testing.assert_allclose(result_values, values[result["position"]], atol=5e-4)
    assert list(result["key"]) == [stages.example("journey").labels[j] for j in result["position"]]


def test_only_the_naive_softmax_overflows(site: AppTest):
    open_whole_page(site, VIEW)
    by_sum = NUMBERS["002_simplified_self_attention"]["weights_by_sum_row2"]
    for times, broken in ((50, 0), (60, 1), (10_000, 6)):
        site.select_slider("ladder_times").set_value(times).run()
        table = site.dataframe[2].value
        scores = panels(site)["scores"][1] * np.float32(times)
        stable = torch.softmax(torch.tensor(scores), -1).numpy()
        actual = table["stable softmax"].map(number_of)
        np.testing.assert_allclose(actual, stable, rtol=1e-3, atol=1e-44)
        assert (table["naive softmax"] == "nan").sum() == broken
        actual = table["score / sum"].map(number_of)
        np.testing.assert_allclose(actual, by_sum, atol=1e-4)


def test_custom_matrix(site: AppTest):
    open_whole_page(site, VIEW)
    choose(site, "simplified", "my matrix")
    box = site.text_area("ladder_matrix")
    box.set_value("3 0; 0 4; 1 1").run()
    np.testing.assert_array_equal(panels(site)["x"], [[3, 0], [0, 4], [1, 1]])
    np.testing.assert_array_equal(panels(site)["scores"], [[9, 0, 3], [0, 16, 4], [3, 4, 2]])
    bad = "<b>x</b> 1"
    box.set_value(bad).run()
    assert not site.exception
    assert messages(site)
    assert site.text_area("ladder_matrix").value == bad
    assert "scores" not in panels(site)
    site.text_area("ladder_matrix").set_value(";".join(["100 " * 8] * 12)).run()
    for rung in stages.RUNGS:
        choose(site, rung, "my matrix")
        assert not messages(site)
        assert np.isfinite(panels(site)["context"]).all()


def test_missing_positions_fall_back_to_the_last(site: AppTest):
    open_whole_page(site, VIEW)
    choose(site, "wrapper", "nine tokens")
    site.select_slider("ladder_i").set_value(8)
    site.slider("ladder_heads").set_value(4)
    site.run()
    site.select_slider("ladder_head").set_value(3).run()
    assert headers_by_title(site)["scores"]["mark"] == [[3, 8, 3]]
    site.slider("ladder_heads").set_value(1).run()
    choose(site, "wrapper", "my matrix")
    assert headers_by_title(site)["scores"]["mark"] == [[0, 3, 3]]
    choose(site, "v1", "my matrix")
    site.text_area("ladder_matrix").set_value("1 2").run()
    assert not site.exception
    assert headers_by_title(site)["scores"]["mark"] == [[0, 0]]


def test_head_count_that_does_not_divide_the_width(site: AppTest):
    open_whole_page(site, VIEW)
    choose(site, "splits")
    site.slider("ladder_heads").set_value(3).run()
    assert messages(site)
    site.slider("ladder_d_out").set_value(6).run()
    assert not messages(site)
    assert panels(site)["q"].shape == (3, 6, 2)


def test_real_sentence_rows(site: AppTest):
    text = "Two kettles sing"
    open_whole_page(site, VIEW, ladder_input="my sentence", ladder_text=text, ladder_rung="v2")
    assert not site.exception
    model = bundled_model(ENCODER)
    ids = torch.tensor(model.tokenizer.encode(text).ids)
    table = model.core.embedding
    assert table is not None
    rows = table[ids].detach()
    tensors = panels(site)
    np.testing.assert_array_equal(tensors["x"], rows[:, :8].numpy())
    assert "384" in headers_by_title(site)["x"]["note"]
    # The calculation uses all columns, not only the ones drawn.
    torch.manual_seed(789)
    w_query = torch.nn.Linear(384, 2, bias=False).weight.detach()
    np.testing.assert_allclose(tensors["q"], (rows @ w_query.T).numpy(), atol=1e-6)
    assert len(site.dataframe[1].value) == 2


@pytest.mark.parametrize(("sign", "reason"), [(1, "exp overflowed"), (-1, "every exp became 0")])
def test_reason_for_naive_softmax_overflow(sign: int, reason: str):
    rung = run_rung("simplified", torch.ones(3, 4))
    signed = replace(rung, record=replace(rung.record, scores=sign * rung.record.scores))
    _, sentence = stages.compare_softmaxes(signed, 0, 1, 500.0, list("abc"))
    assert reason in sentence
    assert "3 of 3 naive weights are nan" in sentence
