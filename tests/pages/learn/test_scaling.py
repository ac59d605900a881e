"""The Scaling page: numbers computed without its code, and control limits."""

import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.scaling import charts, real_head, softmax
from pages.learn.scaling import variances as measured
from tests.helpers.apptest import maps, messages, number_of, open_whole_page
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.lectures import LECTURE_NUMBERS
from ui.charts.style import decades

VIEW = "pages/learn/scaling/page.py"


def qk(name: str, text: str, layer: int, head: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A head's queries and keys, computed without the site's code."""
    model = bundled_model(name)
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.encode(text).ids])
        record = model.core(ids, record=True).records[layer]
    group = record.q.shape[1] // record.k.shape[1]
    return record.q[0, head], record.k[0, head // group]


def tables(site: AppTest) -> list:
    return [table.value for table in site.table]


@pytest.mark.parametrize(
    ("example", "typed"),
    list(zip(LECTURE_NUMBERS["001_softmax_scaling"], softmax.ARTICLE.values(), strict=True)),
)
def test_article_numbers(example: dict, typed: str):
    logits = softmax.parse(typed)
    assert logits == example["logits"]
    result = softmax.softmaxes(logits, 4.0)
    np.testing.assert_allclose(result.plain, example["softmax"], atol=5e-6)
    np.testing.assert_allclose(result.by_sum, example["softmax_of_logits_over_sum"], atol=5e-6)


def test_first_section_shows_the_softmaxes(site: AppTest):
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


@pytest.mark.parametrize(
    ("typed", "message"),
    [("", "2 to 16"), ("7", "1"), ("1 " * 17, "17"), ("1 nan", "nan"), ("1 -1e30", "-1e30")],
)
def test_rejects_non_numeric_scores(typed: str, message: str):
    with pytest.raises(ValueError, match=message):
        softmax.parse(typed)


def test_rejected_scores_are_shown_as_text(site: AppTest):
    typed = "1 <img/src=x> ![i](http://example.invalid/)"
    open_whole_page(site, VIEW, scaling_logits=typed)
    assert not site.exception
    assert messages(site)
    assert site.text_input("scaling_logits").value == typed
    assert maps(site)
    for element in [*site.markdown, *site.warning]:
        assert not re.search(r"(?<!\\)<img|(?<!\\)!\[", element.value)


def test_negative_and_zero_sums(site: AppTest):
    open_whole_page(site, VIEW, scaling_logits="-1 1")
    assert not site.exception
    assert len(site.info) == 1
    assert "÷ their sum" not in tables(site)[1]
    site.text_input("scaling_logits").set_value("-3 1 1").run()
    assert len(site.info) == 1
    assert "÷ their sum" in tables(site)[1]


@pytest.mark.parametrize("typed", ["1000000 -1000000", " ".join(["1e-30"] * 16)])
def test_extreme_scores(site: AppTest, typed: str):
    open_whole_page(site, VIEW, scaling_logits=typed)
    for temperature in (softmax.TEMPERATURES[0], softmax.TEMPERATURES[-1]):
        site.select_slider("scaling_temperature").set_value(temperature).run()
        assert not site.exception
        assert not messages(site)
    assert tables(site)[1]["as they are"].sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("d_k", [1, 1024])
def test_figures_for_one_size(site: AppTest, d_k: int):
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
        # The page shows 4, 2 and 4 digits, and 3 decimals for entropy and weight.
        assert number_of(row["variance"]) == pytest.approx(float(variances.mean()), rel=1e-3)
        assert number_of(row["spread"]) == pytest.approx(float(variances.std()), rel=0.06)
        assert number_of(row["theory"]) == pytest.approx(d_k / divisor**2, rel=1e-3)
        expected = torch.distributions.Categorical(probs=weights).entropy().mean()
        assert number_of(row["entropy"]) == pytest.approx(float(expected), abs=6e-4)
        largest = weights.max(-1).values.mean()
        assert number_of(row["largest weight"]) == pytest.approx(float(largest), abs=6e-4)
    if d_k == 1:
        for measure in measured.MEASURES:
            site.selectbox("scaling_measure").set_value(measure).run()
            assert not site.exception


@pytest.mark.parametrize(("model", "layer", "head"), [(ENCODER, 3, 1), (DECODER, 29, 8)])
def test_head_at_other_scales(site: AppTest, model: str, layer: int, head: int):
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
    counts = rows[rows["keys"] > 1]
    assert len(rows) - len(counts) == int(causal)


@pytest.mark.parametrize("values", [[1.0], [0.3, 2e-13], [1e-300], [1e300, 1.0], [0.999, 1.001]])
def test_logarithmic_axis_covers_its_values(values: list[float]):
    axis = decades(values)
    low, high = axis["scale"]["domain"]
    assert low <= min(values) <= max(values) <= high
    assert 2 <= len(axis["axis"]["values"]) <= 8
    assert all(low <= mark <= high for mark in axis["axis"]["values"])


@pytest.mark.parametrize(("d_k", "best"), [(64, "nothing"), (1024, "√d_k")])
def test_divisor_with_the_largest_gradient(d_k: int, best: str):
    """Without a divisor, the median row of a small head isn't saturated yet."""
    assert f"**{best}**" in measured.gradient_sentence(0, d_k)


def test_sum_that_rounds_to_zero_is_not_a_divisor():
    result = softmax.softmaxes([1.1, 2.2, -3.3], 1.0)  # The sum is 2.4e-7 in float32.
    assert result.by_sum is None
    assert softmax.softmaxes([1.1, 2.2, -3.2], 1.0).by_sum is not None


def test_bars_follow_the_order_of_the_scores():
    """Without an explicit order, an updated chart would keep the order of its first scores."""
    chart = charts.softmax_chart(softmax.softmaxes([21.5, -3.0, 22.0], 2.0).rows)
    assert chart.to_dict()["encoding"]["x"]["sort"] == ["0: 21.5", "1: -3", "2: 22"]
