"""Scaling: the page's numbers against tensors made without its code, and its controls' extremes."""

import math
import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.scaling import charts, real_head, softmax
from pages.learn.scaling import variances as measured
from tests.helpers.apptest import maps, messages, number_of, open_whole_page
from tests.helpers.bundled_models import DECODER, ENCODER, bundled
from tests.helpers.charts import drawn_charts
from tests.helpers.lectures import LECTURE_NUMBERS
from ui.charts.style import decades
from ui.widgets import controls

VIEW = "pages/learn/scaling/page.py"
NUMBERS = LECTURE_NUMBERS


def qk(name: str, text: str, layer: int, head: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A head's queries and keys without any of the site's code."""
    model = bundled(name)
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.encode(text).ids])
        record = model.core(ids, record=True).records[layer]
    group = record.q.shape[1] // record.k.shape[1]
    return record.q[0, head], record.k[0, head // group]


def tables(site: AppTest) -> list:
    return [table.value for table in site.table]


@pytest.mark.parametrize(
    ("example", "typed"),
    list(zip(NUMBERS["001_softmax_scaling"], softmax.ARTICLE.values(), strict=True)),
)
def test_the_article_s_numbers(example: dict, typed: str):
    logits = softmax.parse(typed)
    assert logits == example["logits"]
    found = softmax.softmaxes(logits, 4.0)
    np.testing.assert_allclose(found.plain, example["softmax"], atol=5e-6)
    np.testing.assert_allclose(found.by_sum, example["softmax_of_logits_over_sum"], atol=5e-6)


def test_the_course_s_experiment():
    block = NUMBERS["003_scaling_variance"]
    printed = dict(zip(measured.course(0), block["printed"].values(), strict=True))
    for name, found in measured.course(0).items():
        # the course set no seed: five standard errors of a difference, and its four decimals
        assert abs(found.variance - printed[name]) < 5 * math.sqrt(2) * found.standard_error + 5e-5


def test_the_first_section_shows_the_softmaxes(site: AppTest):
    open_whole_page(site, VIEW)
    site.text_input("scaling_logits").set_value("1; -2, 0.5 3").run()
    site.select_slider("scaling_temperature").set_value(0.5).run()
    logits = torch.tensor([1.0, -2.0, 0.5, 3.0])
    table = tables(site)[1]
    np.testing.assert_allclose(table["as they are"], torch.softmax(logits, -1), rtol=1e-5)
    np.testing.assert_allclose(table["÷ 0.5"], torch.softmax(logits / 0.5, -1), rtol=1e-5)
    np.testing.assert_allclose(table["÷ their sum"], torch.softmax(logits / 2.5, -1), rtol=1e-5)
    numbers = tables(site)[0]
    assert numbers["largest weight"].iloc[0] == f"{torch.softmax(logits, -1).max():.4f}"


def test_presets_fill_the_box(site: AppTest):
    open_whole_page(site, VIEW)
    for name, typed in softmax.ARTICLE.items():
        site.menu_button("scaling_example").click(name).run()
        assert site.text_input("scaling_logits").value == typed


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("", "Type 2 to 16 numbers"),
        ("7", "not 1."),
        ("1 " * 17, "not 17."),
        ("1 two", "“two” is not a number"),
        ("1 nan", "“nan” is not a number"),
        ("1 inf", "out of range"),
        ("1 -1e30", "out of range"),
        ("1 <img src=x onerror=alert(1)>", "is not a number"),
        ("1 ![i](http://example.invalid/)", "is not a number"),
    ],
)
def test_scores_that_are_none(site: AppTest, typed: str, message: str):
    open_whole_page(site, VIEW, scaling_logits=typed)
    assert not site.exception
    assert any(message in shown for shown in messages(site))
    assert site.text_input("scaling_logits").value == typed
    assert maps(site)  # the rest of the page is there
    for element in [*site.markdown, *site.warning]:
        assert not re.search(r"(?<!\\)<img|(?<!\\)!\[", element.value)


def test_sums_that_turn_round_or_vanish(site: AppTest):
    open_whole_page(site, VIEW, scaling_logits="-1 1")
    assert not site.exception
    assert any("add up to 0" in info.value for info in site.info)
    assert "÷ their sum" not in tables(site)[1]
    site.text_input("scaling_logits").set_value("-3 1 1").run()
    assert any("smallest score wins" in info.value for info in site.info)


@pytest.mark.parametrize("typed", ["1000000 -1000000", "0 0", " ".join(["1e-30"] * 16), "[1, 2]"])
def test_extreme_scores(site: AppTest, typed: str):
    open_whole_page(site, VIEW, scaling_logits=typed)
    assert not site.exception
    assert not messages(site)
    for temperature in (softmax.TEMPERATURES[0], softmax.TEMPERATURES[-1]):
        site.select_slider("scaling_temperature").set_value(temperature).run()
        assert not site.exception
    assert tables(site)[1]["as they are"].sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("d_k", [1, 64, 1024])
def test_the_numbers_of_one_size(site: AppTest, d_k: int):
    seed = 5
    open_whole_page(site, VIEW, scaling_d_k=str(d_k), scaling_seed=str(seed))
    generator = torch.Generator().manual_seed(seed)
    shape = (measured.N_DRAWS, measured.N_TOKENS, measured.D_KS[-1])
    q, k = torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
    scores = q[..., :d_k] @ k[..., :d_k].mT
    table = site.dataframe[0].value.set_index("divided by")
    for name, divisor in (("nothing", 1), ("√d_k", d_k**0.5), ("d_k", d_k), ("d_k²", d_k**2)):
        row = table.loc[name]
        variances = (scores / divisor).flatten(1).var(dim=1)
        weights = torch.softmax(scores / divisor, dim=-1)
        # shown with 4, 2 and 4 digits; entropy and weight with 3 decimals
        assert number_of(row["variance"]) == pytest.approx(float(variances.mean()), rel=1e-3)
        assert number_of(row["spread"]) == pytest.approx(float(variances.std()), rel=0.06)
        assert number_of(row["theory"]) == pytest.approx(d_k / divisor**2, rel=1e-3)
        expected = torch.distributions.Categorical(probs=weights).entropy().mean()
        assert number_of(row["entropy"]) == pytest.approx(float(expected), abs=6e-4)
        largest = weights.max(-1).values.mean()
        assert number_of(row["largest weight"]) == pytest.approx(float(largest), abs=6e-4)
    for measure in measured.MEASURES:
        site.selectbox("scaling_measure").set_value(measure).run()
        assert not site.exception


@pytest.mark.parametrize(("model", "layer", "head"), [(ENCODER, 3, 1), (DECODER, 29, 8)])
def test_a_head_at_other_scales(site: AppTest, model: str, layer: int, head: int):
    text = "Nine bells rang over the harbour"
    open_whole_page(
        site,
        VIEW,
        scaling_text=text,
        scaling_model=model,
        scaling_layer=str(layer),
        scaling_head=str(head),
    )
    q, k = qk(model, text, layer, head)
    scores = q @ k.T
    causal = model.startswith("smollm2")
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    own = q.shape[-1] ** -0.5
    settings = [(real_head.REMOVED, "4", 1.0), (real_head.KEPT, "4", own)]
    settings += [(real_head.FACTOR, name, own * size) for name, size in real_head.FACTORS.items()]
    for how, factor, scale in settings:
        site.radio("scaling_how").set_value(how).run()
        slider = site.select_slider("scaling_factor")
        assert slider.disabled == (how != real_head.FACTOR)
        if not slider.disabled:
            slider.set_value(factor).run()
        assert not site.exception
        (left, original), (right, changed) = maps(site)
        expected = torch.softmax(scores * own, -1).numpy()
        np.testing.assert_allclose(original, expected, atol=1e-5)
        expected = torch.softmax(scores * scale, -1).numpy()
        np.testing.assert_allclose(changed, expected, atol=1e-5)
        assert left["largest"] == right["largest"] == max(original.max(), changed.max())
        assert left["causal"] == right["causal"] == causal
    rows = site.dataframe[1].value
    entropies = torch.distributions.Categorical(logits=scores * scale).entropy()
    np.testing.assert_allclose(rows["changed: entropy"], entropies, atol=1e-3)
    np.testing.assert_allclose(rows["changed: largest"], changed.max(-1), atol=6e-5)
    counted = rows[rows["keys"] > 1]
    assert len(rows) - len(counted) == int(causal)


def test_the_original_is_what_the_model_computed(site: AppTest):
    open_whole_page(site, VIEW, scaling_layer="3", scaling_head="1")
    model = bundled(ENCODER)
    ids = torch.tensor([model.tokenizer.encode(controls.ANIMAL).ids])
    with torch.inference_mode():
        expected = model.core(ids, record=True).records[3].weights[0, 1].numpy()
    np.testing.assert_allclose(maps(site)[0][1], expected, atol=1e-6)


@pytest.mark.parametrize(
    "text", ["", "word " * 140, "x", "naïve 日本語 \u202e rtl", "<b>**a**</b>"]
)
@pytest.mark.parametrize("model", [ENCODER, DECODER])
def test_sentences_of_all_kinds(site: AppTest, model: str, text: str):
    open_whole_page(site, VIEW, scaling_model=model, scaling_text=text)
    assert not site.exception
    assert maps(site) or messages(site)
    assert site.text_input("scaling_text").value == text


def test_a_link_restores_the_view(site: AppTest):
    open_whole_page(
        site,
        VIEW,
        scaling_logits="1 2",
        scaling_temperature="0.25",
        scaling_d_k="1024",
        scaling_seed="99",
        scaling_measure=measured.REACHES,
        scaling_how=real_head.FACTOR,
        scaling_factor="1/16",
        scaling_layer="5",
    )
    assert not site.exception
    assert not site.toast
    assert site.text_input("scaling_logits").value == "1 2"
    assert site.select_slider("scaling_temperature").value == 0.25
    assert site.select_slider("scaling_d_k").value == 1024
    assert site.slider("scaling_seed").value == 99
    assert site.selectbox("scaling_measure").value == measured.REACHES
    assert site.radio("scaling_how").value == real_head.FACTOR
    assert site.select_slider("scaling_factor").value == "1/16"
    assert maps(site)[1][0]["title"].endswith(f"{1 / math.sqrt(32) / 16:.4g}")


@pytest.mark.usefixtures("no_weights")
def test_without_weights_the_first_two_sections_stay(site: AppTest):
    open_whole_page(site, VIEW)
    assert any("make run" in message for message in messages(site))
    assert len(drawn_charts(site)) == 3
    assert not maps(site)


@pytest.mark.parametrize("values", [[1.0], [0.3, 2e-13], [1e-300], [1e300, 1.0], [0.999, 1.001]])
def test_an_axis_of_decades_holds_its_values(values: list[float]):
    axis = decades(values)
    low, high = axis["scale"]["domain"]
    assert low <= min(values) <= max(values) <= high
    assert 2 <= len(axis["axis"]["values"]) <= 8
    assert all(low <= mark <= high for mark in axis["axis"]["values"])


@pytest.mark.parametrize(("d_k", "best"), [(64, "nothing"), (1024, "√d_k")])
def test_which_divisor_lets_most_gradient_through(d_k: int, best: str):
    """Without a divisor the median row of a small head is not saturated yet."""
    said = measured.most_reaches(0, d_k)
    assert f"d_k = {d_k} " in said
    assert f"divided by **{best}**" in said
    assert ("d_k = 1,024 it's **√d_k**" in said) == (d_k == 64)


def test_numbers_that_add_up_to_zero_but_for_rounding_are_divided_by_nothing():
    result = softmax.softmaxes([1.1, 2.2, -3.3], 1.0)  # 2.4e-7 in float32
    assert result.by_sum is None
    assert softmax.softmaxes([1.1, 2.2, -3.2], 1.0).by_sum is not None


def test_bars_stand_in_the_order_of_the_scores():
    """A chart that is changed would go on in the order of its first scores."""
    chart = charts.softmax_chart(softmax.softmaxes([21.5, -3.0, 22.0], 2.0).rows)
    assert chart.to_dict()["encoding"]["x"]["sort"] == ["0: 21.5", "1: -3", "2: 22"]
