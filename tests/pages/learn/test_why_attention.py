"""Test the Why attention page: numbers (compared to autograd), control limits and links."""

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn

from attention_core import SelfAttentionV2
from pages.learn.why_attention import influence, readout, timing
from pages.learn.why_attention.experiment import word_vectors
from serving import measure
from tests.helpers.apptest import messages, open_whole_page
from tests.helpers.charts import drawn_charts
from tests.helpers.lectures import LECTURE_NUMBERS

VIEW = "pages/learn/why_attention/page.py"
TEXT = "a kite and a boat"


def metrics(site: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in site.metric}


def test_page_shows_the_notebook_weights(site: AppTest):
    open_whole_page(
        site, VIEW, why_attention_notebook="true", why_attention_state="2", why_attention_seed="789"
    )
    assert not site.exception
    table = site.dataframe[0].value
    expected = LECTURE_NUMBERS["002_self_attention_v2_seed789"]["weights"][-1]
    np.testing.assert_allclose(table["attention: weight"], expected, atol=5e-5)
    assert site.text_input("why_attention_text").disabled
    assert metrics(site)["Numbers in the sentence"] == "6 × 3 = 18"


def test_gradients_match_autograd(site: AppTest):
    open_whole_page(
        site,
        VIEW,
        why_attention_text=TEXT,
        why_attention_width="4",
        why_attention_state="8",
        why_attention_hold="1.5",
        why_attention_seed="3",
    )
    torch.manual_seed(3)
    gru = nn.GRU(4, 8, batch_first=True)
    with torch.no_grad():
        gru.bias_ih_l0[8:16] += 1.5
    torch.manual_seed(3)
    layer = SelfAttentionV2(4, 8)
    gru, layer = gru.double(), layer.double()
    x = word_vectors(TEXT.split(), 4, 3).double()
    table = site.dataframe[0].value
    for name, last in (
        ("GRU", lambda one: gru(one[None])[1][0, 0]),
        ("attention", lambda one: layer(one[None])[0, -1]),
    ):
        jacobian = torch.autograd.functional.jacobian(last, x)
        expected = jacobian.norm(dim=(0, 2))
        np.testing.assert_allclose(table[f"{name}: gradient"], expected, rtol=1e-6)
        shares = expected / expected.mean()
        np.testing.assert_allclose(table[f"{name}: × equal share"], shares, rtol=1e-6)
        inside = "in the GRU" if name == "GRU" else "in attention"
        assert metrics(site)[f"Word 0 {inside} (share)"] == f"{shares[0]:.2g}"
    assert metrics(site)["Numbers in the last state"] == "8"
    assert list(table["word"]) == TEXT.split()


def test_growth_ends_with_the_whole_sentence():
    words = " ".join(f"w{i}" for i in range(64))
    setting = influence.setting(
        words, notebook=False, width=8, state=16, hold=0.0, layer=influence.TRAINABLE, seed=0
    )
    grown, result = influence.growth(setting), influence.reach(setting)
    assert grown[influence.GRU].iloc[-1] == pytest.approx(result.gru_share[0], rel=1e-6)
    assert grown[influence.ATTENTION].iloc[-1] == pytest.approx(result.attention_share[0], rel=1e-6)
    assert grown[influence.GRU].iloc[0] == 1.0


def test_state_readout_matches_least_squares():
    result = readout.readout(4, 8, 0.0, 2)
    torch.manual_seed(2)
    gru = nn.GRU(4, 8, batch_first=True)
    generator = torch.Generator().manual_seed(2)
    n = readout.READOUT_SEQUENCES
    x = torch.randn(n, readout.READOUT_TOKENS, 4, generator=generator) / 2
    with torch.no_grad():
        state = np.c_[gru(x)[1][0].double().numpy(), np.ones(n)]
    half = n // 2
    for place in (0, 8, 15):
        token = x[:, place].double().numpy()
        reader = np.linalg.lstsq(state[:half], token[:half], rcond=None)[0]
        error = ((state[half:] @ reader - token[half:]) ** 2).mean()
        expected = 1 - error / token[half:].var(axis=0, ddof=1).mean()
        assert result[place] == pytest.approx(expected, abs=1e-6)
    assert 0 < readout.recovered_dimensions(result, 4) <= 8


def test_controls_at_their_limits(site: AppTest):
    open_whole_page(site, VIEW)
    site.slider("why_attention_seed").set_value(influence.MAX_SEED)
    ends = (
        (influence.WIDTHS[0], influence.STATES[0], 0.0),
        (influence.WIDTHS[-1], 64, influence.MAX_HOLD),
    )
    for width, state, hold in ends:
        site.select_slider("why_attention_width").set_value(width)
        site.select_slider("why_attention_state").set_value(state)
        site.slider("why_attention_hold").set_value(hold)
        for layer in influence.LAYERS:
            site.selectbox("why_attention_layer").set_value(layer).run()
            assert not site.exception
            assert not messages(site)
            table = site.dataframe[0].value
            assert np.isfinite(table.select_dtypes("number")).all(axis=None)
            assert table["GRU: × equal share"].mean() == pytest.approx(1.0)
            assert table["attention: weight"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("text", "numbers"), [(" \u2003 ", ()), ("word " * 70, ("70", "64"))])
def test_rejects_invalid_sentences(site: AppTest, text: str, numbers: tuple[str, ...]):
    open_whole_page(site, VIEW, why_attention_text=text)
    assert not site.exception
    (message,) = messages(site)
    assert all(number in message for number in numbers)
    assert len(drawn_charts(site)) == 2  # The sections that don't need a sentence are still there.


def test_times_are_measured_only_on_request(site: AppTest):
    open_whole_page(site, VIEW)
    first = site.dataframe[1].value
    assert list(first["tokens"]) == list(timing.FEW)
    assert list(first["attention scores"]) == [n**2 for n in timing.FEW]
    cached = timing.times(measure.FIRST)
    site.select_slider("why_attention_state").set_value(8).run()
    assert timing.times(measure.FIRST) is cached
    assert site.dataframe[1].value.equals(first)
    assert any(f"{cached.at:%H:%M:%S} UTC" in element.value for element in site.markdown)
    site.button("why_attention_measure").click().run()
    assert not site.exception
    second = site.dataframe[1].value
    assert list(second["tokens"]) == list(timing.MANY)
    label = f"GRU loop compared to attention, {timing.RATIO_AT} tokens"
    assert float(metrics(site)[label].split(" ")[0]) > 0


def test_medians_match_the_samples():
    result = timing.times(measure.FIRST).value
    for samples in result.seconds.values():
        for length in result.lengths:
            assert 0 < samples[length].low <= samples[length].median <= samples[length].high
            assert len(samples[length].values) == result.repeats
