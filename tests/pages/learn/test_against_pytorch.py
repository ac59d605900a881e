"""The Against PyTorch page: its numbers, controls and measured times."""

from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn

from attention_core.ladder import MultiHeadAttention
from pages.learn.against_pytorch import charts
from pages.learn.against_pytorch import comparison as lesson
from serving import measure
from serving.limits import MAX_SEED
from tests.helpers.apptest import messages, number_of, open_whole_page
from tests.helpers.charts import drawn_charts
from tests.helpers.drawn_tensors import pictures
from ui.charts import show

VIEW = "pages/learn/against_pytorch/page.py"
KEY = "against_pytorch_"


def panels(site: AppTest) -> dict[str, tuple[dict[str, Any], np.ndarray]]:
    """Every panel on the page, by name and axes, as sent to the browser."""
    results = {}
    for tensor in (tensor for picture in pictures(site) for tensor in picture):
        assert tensor.cells is not None
        assert tensor.groups is None
        results[f"{tensor.panel['name']} {tensor.panel['axes'][0]}"] = (tensor.panel, tensor.values)
    return results


def peers(
    width: int, heads: int, tokens: int, batch: int, seed: int, causal: bool, bias: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Our output, and the output and mean weights of PyTorch's module."""
    torch.manual_seed(seed)
    ours = MultiHeadAttention(width, width, tokens, 0.0, heads, bias, causal=causal).eval()
    x = torch.randn(batch, tokens, width, generator=torch.Generator().manual_seed(seed))
    theirs = nn.MultiheadAttention(width, heads, batch_first=True).eval()
    stacked = [layer.weight for layer in (ours.W_query, ours.W_key, ours.W_value)]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat(stacked))
        theirs.in_proj_bias.zero_()
        if bias:
            theirs.in_proj_bias.copy_(
                torch.cat([layer.bias for layer in (ours.W_query, ours.W_key, ours.W_value)])
            )
        theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
        mask = torch.ones(tokens, tokens, dtype=torch.bool).triu(1) if causal else None
        output, weights = theirs(x, x, x, attn_mask=mask)
        return ours(x), output, weights


@pytest.mark.parametrize(
    ("width", "heads", "tokens", "batch", "seed", "causal", "bias"),
    [
        (48, 6, 3, 1, 7, False, True),
        (96, 96, 17, 3, 0, True, True),
        (2, 1, 1, 4, 9999, False, False),
    ],
)
def test_windows_match_torch(
    site: AppTest,
    width: int,
    heads: int,
    tokens: int,
    batch: int,
    seed: int,
    causal: bool,
    bias: bool,
):
    setting = {"width": width, "heads": heads, "tokens": tokens, "batch": batch, "seed": seed}
    query = {KEY + name: str(value) for name, value in setting.items()}
    open_whole_page(site, VIEW, **query, **{KEY + "causal": str(causal), KEY + "bias": str(bias)})
    assert not site.exception
    assert not messages(site)
    ours, theirs, weights = peers(width, heads, tokens, batch, seed, causal, bias)
    page_panels = panels(site)
    n = lesson.WINDOW
    header, values = page_panels["ours (weight splits) token"]
    np.testing.assert_allclose(values, ours[0, :n, :n], rtol=0, atol=1e-6)
    for name in ("nn.MultiheadAttention token", "with scaled_dot_product_attention token"):
        np.testing.assert_allclose(page_panels[name][1], theirs[0, :n, :n], rtol=0, atol=1e-6)
    for name in ("ours, mean over heads query", "nn.MultiheadAttention query"):
        np.testing.assert_allclose(page_panels[name][1], weights[0, :n, :n], rtol=0, atol=1e-6)
    # Only rounding: this compares the weight splits with the four other implementations.
    differences = site.table[0].value["largest difference"].map(number_of)
    assert len(differences) == 4
    assert (differences < 1e-5).all()


def test_products_and_memory_are_counted(site: AppTest):
    open_whole_page(site, VIEW, **{KEY + "heads": "12", KEY + "tokens": "20", KEY + "batch": "3"})
    products, memory = site.table[1].value, site.table[2].value
    assert products["counted"].tolist() == [37, 4, 2, 2, 4]
    assert products["q, k, v + output"].tolist() == ["36 + 1", "3 + 1", "1 + 1", "1 + 1", "3 + 1"]
    assert products["kernel calls"].tolist() == [0, 0, 0, 1, 1]
    square = 3 * 12 * 20 * 20 * 4
    assert any(f"**{square:,}** bytes" in text.value for text in site.markdown)
    saved_counts = [int(text.replace(",", "")) for text in memory["of these in (T, T) tensors"]]
    assert saved_counts[3:] == [0, 0]
    assert all(count >= square for count in saved_counts[:3])


def test_invalid_head_count_is_explained(site: AppTest):
    open_whole_page(site, VIEW, **{KEY + "width": "64", KEY + "heads": "12"})
    assert not site.exception
    (message,) = messages(site)
    for numbers in ("(64)", "(12)", "1, 2, 4, 8, 16, 32 or 64"):
        assert numbers in message
    assert len(drawn_charts(site)) == 1
    site.select_slider(KEY + "heads").set_value(16).run()
    assert not messages(site)
    assert panels(site)


def test_controls_at_their_limits(site: AppTest):
    open_whole_page(site, VIEW)
    site.select_slider(KEY + "width").set_value(lesson.WIDTHS[-1])
    site.select_slider(KEY + "heads").set_value(lesson.HEADS[-1])
    site.slider(KEY + "tokens").set_value(lesson.MAX_TOKENS)
    site.slider(KEY + "batch").set_value(lesson.MAX_BATCH)
    site.number_input(KEY + "seed").set_value(MAX_SEED).run()
    assert not site.exception
    assert not messages(site)
    assert panels(site)


def test_times_are_measured_only_on_request(site: AppTest):
    measure.clear()
    open_whole_page(site, VIEW)
    status = [text.value for text in site.text if text.value.startswith("Measured")]
    assert "width 192, 32 tokens, batch 1" in status[0]
    assert site.dataframe[0].value["heads"].tolist() == [1, 8, 32, 96]
    first = site.dataframe[0].value
    # Changing the comparison's settings or the sizes to time doesn't start a measurement.
    site.slider(KEY + "tokens").set_value(5)
    site.select_slider(KEY + "time_width").set_value(192)
    site.select_slider(KEY + "time_tokens").set_value(16).run()
    assert site.dataframe[0].value.equals(first)
    site.button(KEY + "measure").click().run()
    assert not site.exception
    table = site.dataframe[0].value
    assert table["heads"].tolist() == [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96]
    (status,) = [text.value for text in site.text if text.value.startswith("Measured")]
    assert "width 192, 16 tokens" in status
    # The result stays visible after other controls change.
    site.slider(KEY + "tokens").set_value(6).run()
    assert site.dataframe[0].value.equals(table)


def test_chart_and_table_show_the_same_measurement():
    result = lesson.series(lesson.request(192, 16), lambda _: None).value
    values = show.specification(charts.times_chart, result.medians, ink="#000000", paper="#ffffff")[
        "data"
    ]["values"]
    assert len(values) == 11 * 5
    rows = result.rows
    assert len(rows) == 11 * 5 * lesson.REPEATS
    for value in values:
        own = rows[(rows["way"] == value["way"]) & (rows["heads"] == value["heads"])]
        milliseconds = own["milliseconds"]
        assert value["median"] == pytest.approx(milliseconds.median())
        assert value["low"] == pytest.approx(milliseconds.min())
        assert value["high"] == pytest.approx(milliseconds.max())
        timings = result.table.set_index("heads")[f"{value['way']}, ms"][value["heads"]]
        assert timings.startswith(f"{value['median']:.2f} (")


def test_answer_matches_the_lecture_count():
    (question, *_) = lesson.questions()
    assert question.right == str(3 * 96)
