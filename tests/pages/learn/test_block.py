"""The Block page: its numbers, its controls at their limits, and its links."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.block import (
    activation,
    original_layers,
    parameters,
    permutation,
    prediction,
    sections,
    stream,
)
from serving import runs
from serving.cache import size_of
from tests.helpers.apptest import code, open_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.charts import drawn_charts
from tests.helpers.drawn_tensors import pictures
from ui.text.formatting import format_number, percent

VIEW = "pages/learn/block/page.py"
TEXT = "Nine grey geese fly over the frozen lake"


def panels(site: AppTest) -> list[tuple[dict[str, Any], np.ndarray]]:
    """Description and values of each panel of the first picture, as sent."""
    return [(tensor.panel, tensor.values) for tensor in pictures(site)[0]]


def frame(site: AppTest, number: int = 0):
    return site.dataframe[number].value


def chart(site: AppTest) -> pd.DataFrame:
    """The rows of the first chart, as sent to the browser."""
    return drawn_charts(site)[0].rows


def run_of(name: str, text: str):
    model = bundled_model(name)
    ids = torch.tensor([model.tokenizer.encode(text).ids])
    with torch.inference_mode():
        return model, model.core(ids, record=True)


def test_page_opens_on_the_lecture_layer(site: AppTest):
    open_page(site, VIEW, block_step="2")
    (table,) = plain_tables(site)
    for step, sizes in ((1, ["8", "5", "64"]), (2, ["5", "512"]), (6, ["5", "2,048"])):
        assert re.findall(r"[\d,]+", table["shape"][step]) == sizes
    (heads, values), (merged, side_by_side) = panels(site)
    assert heads["shape"] == [3, 5, 3]
    assert merged["columns"] == ["0", "1", "2", "64", "65", "66", "128", "129", "130"]
    for head in range(3):
        np.testing.assert_array_equal(side_by_side[:, 3 * head : 3 * head + 3], values[head])


@pytest.mark.parametrize(("name", "layer"), [(DECODER, 17), (ENCODER, 4), (DECODER, 0)])
def test_all_steps_of_a_real_layer(site: AppTest, name: str, layer: int):
    open_page(
        site, VIEW, block_layer_of=name, block_layer=str(layer), block_text=TEXT, block_step="9"
    )
    assert not site.exception
    model, output = run_of(name, TEXT)
    after = output.hidden_states[layer + 1][0]
    (table,) = plain_tables(site)
    assert table["shape"][9] == f"{len(after)} tokens × width of {model.core.config.d_model}"
    assert table["mean norm"][0] == pytest.approx(
        float(output.hidden_states[layer][0].norm(dim=-1).mean()), rel=1e-5
    )
    _, values = panels(site)[-1]
    np.testing.assert_array_equal(values, after[:6, :6].numpy())
    np.testing.assert_allclose(chart(site)["value"], after.norm(dim=-1).numpy(), rtol=1e-5)
    for step in range(10):  # Each step shows the statement that computed it.
        site.select_slider("block_step").set_value(step).run()
        assert not site.exception
        assert len(code(site)) == 1


def test_2017_layers_at_their_limits(site: AppTest):
    open_page(site, VIEW)
    for kind, n_steps, heads, hidden in (
        (original_layers.ENCODER_2017, 10, original_layers.HEADS_2017[-1], 4096),
        (original_layers.DECODER_2017, 15, original_layers.HEADS_2017[0], 512),
    ):
        site.selectbox("block_layer_of").set_value(kind)
        site.select_slider("block_heads").set_value(heads)
        site.select_slider("block_hidden").set_value(hidden).run()
        assert len(plain_tables(site)[0]) == n_steps
        for step in range(n_steps):
            site.select_slider("block_step").set_value(step).run()
            assert not site.exception
            assert len(code(site)) == 1
    # A step that only the longer layer has falls back to the last step of the shorter one.
    site.selectbox("block_layer_of").set_value(original_layers.ENCODER_2017).run()
    assert site.select_slider("block_step").value == 9


def test_decoder_reads_the_first_half_and_keeps_everything(site: AppTest):
    open_page(site, VIEW, block_layer_of=original_layers.DECODER_2017, block_text=TEXT)
    assert plain_tables(site)[0]["shape"][0].startswith("4 tokens")
    site.select_slider("block_step").set_value(6).run()
    (_, queries), (memory, _), (_, heads) = panels(site)
    assert queries.shape == (4, 6)
    assert memory["rows"] == ["Nine", "grey", "geese", "fly", "over", "the"]
    assert re.findall(r"\d+", memory["shapeText"]) == ["8", "512", "6", "6"]
    assert heads.shape == (2, 4, 6)


def test_parts_on_a_permuted_text(site: AppTest):
    section = {"block_section": sections.ORDER, "block_text": TEXT}
    open_page(site, VIEW, **section)
    for choice, how in zip(
        (original_layers.ENCODER_2017, original_layers.DECODER_2017, DECODER, ENCODER),
        (*permutation.ORDERS, "reversed"),
        strict=True,
    ):
        site.selectbox("block_layer_of").set_value(choice)
        site.selectbox("block_order").set_value(how).run()
        assert not site.exception
        table = frame(site)
        assert list(table["order does not matter"]) == [True, True, True, False, False]
    (_, first), (_, second) = panels(site)
    assert first.shape == second.shape
    assert np.abs(first - second).max() > 1e-3  # With a causal mask, the first part to change.
    site.selectbox("block_part").set_value("feed-forward").run()
    (_, first), (_, second) = panels(site)
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_requested_permutation(site: AppTest):
    open_page(site, VIEW, block_section=sections.ORDER, block_order="rotated", block_text="a b c d")
    assert "b c d a" in site.text[0].value.replace("\u2068", "").replace("\u2069", "")
    site.selectbox("block_order").set_value("shuffled").run()
    site.slider("block_seed").set_value(7).run()
    shuffled = torch.randperm(4, generator=torch.Generator().manual_seed(7)).tolist()
    words = " ".join("abcd"[i] for i in shuffled)
    assert words in site.text[0].value.replace("\u2068", "").replace("\u2069", "")


def test_parameter_counts_match_the_models(site: AppTest):
    open_page(site, VIEW, block_section=sections.COUNTS)
    table = frame(site).set_index("part")["parameters"]
    assert table["feed-forward"] == f"{12 * (2 * 512 * 2048 + 2048 + 512):,}"
    for choice in parameters.countable():
        site.selectbox("block_count").set_value(choice).run()
        assert not site.exception
        numbers = [int(number.replace(",", "")) for number in frame(site)["parameters"]]
        assert sum(numbers[:-1]) == numbers[-1]
        assert list(chart(site)["value"]) == numbers[:-1]
        if choice in (DECODER, ENCODER):
            core = bundled_model(choice).core
            assert numbers[-1] == sum(p.numel() for p in core.parameters())


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_residual_stream(site: AppTest, name: str):
    open_page(site, VIEW, block_section=sections.STREAM, block_model=name, block_text=TEXT)
    assert not site.exception
    _, output = run_of(name, TEXT)
    norms = torch.cat(output.hidden_states).norm(dim=-1)
    table = frame(site)
    np.testing.assert_allclose(table["stream, mean"], norms.mean(-1), rtol=1e-5)
    np.testing.assert_allclose(table["stream, smallest"], norms.amin(-1), rtol=1e-5)
    np.testing.assert_allclose(table["stream, largest"], norms.amax(-1), rtol=1e-5)
    added = [float(record.output[0].norm(dim=-1).mean()) for record in output.records]
    np.testing.assert_allclose(table["attention adds, mean"][1:], added, rtol=1e-5)
    site.select_slider("block_back").set_value(norms.shape[1] - 1).run()
    rows = chart(site)
    first = rows["token"][rows["series"] == "stream"]
    np.testing.assert_allclose(first, norms[:, 0], rtol=1e-3)


def test_logit_lens_ends_with_the_model_prediction(site: AppTest):
    open_page(site, VIEW, block_section=sections.LENS, block_decoder=DECODER)
    model, output = run_of(DECODER, prediction.PARIS)
    probabilities = output.logits[0, -1].softmax(-1)
    best = int(probabilities.argmax())
    table = frame(site)
    assert model.tokenizer.decode([best]) == " Paris"
    assert table["1."].iloc[-1] == f"Paris {percent(float(probabilities[best]))}"
    assert table["rank of the final token"].iloc[-1] == 1
    assert table["its probability"].iloc[-1] == pytest.approx(float(probabilities[best]), rel=1e-4)
    with torch.inference_mode():
        middle = model.core.final_norm(output.hidden_states[20][0, -1]) @ model.core.unembedding
    expected = middle.softmax(-1)
    assert table["its probability"][20] == pytest.approx(float(expected[best]), rel=1e-3)
    assert table["rank of the final token"][20] == 1 + int((expected > expected[best]).sum())
    assert "30 layers" in site.text[-1].value


def test_next_token(site: AppTest):
    open_page(site, VIEW, block_section=sections.NEXT, block_decoder=DECODER)
    _, output = run_of(DECODER, prediction.PARIS)
    top = output.logits[0, -1].softmax(-1).topk(10)
    rows = chart(site)
    np.testing.assert_allclose(rows["value"], top.values, rtol=1e-4)
    assert rows["label"][0] == "Paris"
    result = prediction.next_token(DECODER, prediction.PARIS)
    assert result.difference < 1e-3
    assert format_number(result.difference, ".1e") in site.text[0].value
    gflop = [float(number) for number in frame(site)["GFLOP"]]
    assert gflop == sorted(gflop, reverse=True)
    # A multiply and an add per weight and row, including the tied output matrix. Scores add little.
    n_parameters = sum(p.numel() for p in bundled_model(DECODER).core.parameters())
    assert gflop[0] == pytest.approx(5 * 2 * n_parameters / 1e9, rel=0.01)


def test_cache_size_is_limited():
    runs.run_forward.clear()
    first = stream.run(ENCODER, TEXT)
    assert stream.run(ENCODER, TEXT).run is first.run
    assert (
        runs.run_forward.nbytes
        == size_of(first.run.tensors)
        >= first.run.tensors.states.numel() * 4
    )


@pytest.mark.parametrize(
    ("layer_of", "step", "function"),
    [(DECODER, 7, "SiLU"), (ENCODER, 6, "GELU"), (original_layers.ENCODER_2017, 6, "ReLU")],
)
def test_activation_chart_uses_the_last_token(
    site: AppTest, layer_of: str, step: int, function: str
):
    open_page(
        site, VIEW, block_layer_of=layer_of, block_layer="3", block_text=TEXT, block_step=str(step)
    )
    rows = chart(site)
    line, points = (rows[rows["series"] == name] for name in (activation.CURVE, activation.NUMBERS))
    torch_s_own = {"SiLU": torch.nn.SiLU(), "GELU": torch.nn.GELU(), "ReLU": torch.nn.ReLU()}
    for part in (line, points):
        before = torch.tensor(part["before"].to_numpy())
        torch.testing.assert_close(
            torch_s_own[function](before),
            torch.tensor(part["after"].to_numpy()),
            atol=1e-5,
            rtol=1e-5,
        )
    message = site.text[-1].value
    assert len(points) == activation.MAX_SHOWN
    assert line["before"].min() <= points["before"].min() < 0 < points["before"].max()
    if layer_of != original_layers.ENCODER_2017:
        mlp = bundled_model(layer_of).core.blocks[3].mlp
        before = outputs_of(mlp.gate if mlp.gate is not None else mlp.up, layer_of, TEXT)[0, -1]
        assert f"{len(before):,} numbers" in message
        assert f"{int((before < 0).sum()):,} are below zero" in message
        inputs = torch.tensor(points["before"].to_numpy(), dtype=before.dtype)
        nearest = (before[None] - inputs[:, None]).abs().amin(dim=1)
        torch.testing.assert_close(nearest, torch.zeros(len(inputs)), atol=1e-4, rtol=0)


def outputs_of(module: torch.nn.Module, name: str, text: str) -> torch.Tensor:
    """The output of a module of a bundled model on the text."""
    outputs: list[torch.Tensor] = []
    handle = module.register_forward_hook(lambda _, __, output: outputs.append(output))
    run_of(name, text)
    handle.remove()
    return outputs[0]
