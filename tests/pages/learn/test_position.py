"""Compare the Position page to tensors computed without its code."""

import math
import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn.functional import cosine_similarity, layer_norm, scaled_dot_product_attention
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from pages.learn.position import permutation, rotation, sections
from tests.helpers.apptest import messages, open_page, open_whole_page, plain_tables, python_numbers
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.charts import DrawnChart, drawn_charts
from tests.helpers.drawn_tensors import drawings, panels, pictures

VIEW = "pages/learn/position/page.py"
TEXT = "Nine bells rang over the harbour"


def paragraph(site: AppTest, begin: str) -> str:
    """The paragraph that starts like this, in ASCII and without bold marks."""
    (text,) = [m.value for m in site.markdown if m.value.startswith(begin)]
    return python_numbers(re.sub(r"\*\*", "", text))


def numbers(text: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e-\d+)?", text)]


def chart(site: AppTest, *columns: str) -> DrawnChart:
    """The chart with these columns."""
    (results,) = [c for c in drawn_charts(site) if set(columns) <= set(c.rows)]
    return results


def minilm_outputs(ids: list[int], places: list[int] | None) -> torch.Tensor:
    """The output of the first attention layer with PyTorch's functions, (T, C)."""
    core = bundled_model(ENCODER).core
    attention, tokens = core.blocks[0].attention, torch.tensor(ids)
    with torch.inference_mode():
        x = core.embedding[tokens] + core.segments[0]
        x = x if places is None else x + core.positions[torch.tensor(places)]
        norm = core.embedding_norm
        x = layer_norm(x, x.shape[-1:], norm.weight, norm.bias, 1e-12)
        projected = x @ attention.qkv.matrix + attention.qkv.bias
        q, k, v = projected.view(len(ids), 3, 12, 32).permute(1, 2, 0, 3)
        merged = scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)
        return merged @ attention.out.matrix + attention.out.bias


@pytest.mark.parametrize("text", [permutation.WITHOUT, permutation.WITH])
def test_same_tokens_in_two_orders(site: AppTest, text: str):
    open_page(site, VIEW, position_text="dog bites man", position_given=text)
    ids = list(bundled_model(ENCODER).tokenizer.encode("dog bites man").ids)
    places = [0, 1, 2, 3, 4] if text == permutation.WITH else None
    tensors, other = panels(site), [ids[0], ids[3], ids[2], ids[1], ids[4]]
    first, second = minilm_outputs(ids, places), minilm_outputs(other, places)
    close = {"atol": 1e-5, "rtol": 0}
    np.testing.assert_allclose(tensors["original order"], first.T[:8], **close)
    np.testing.assert_allclose(tensors["new order"], second.T[:8], **close)
    (pair,) = pictures(site)
    assert [p.panel["columns"] for p in pair] == [
        ["[CLS]", "dog", "bites", "man", "[SEP]"],
        ["[CLS]", "man", "bites", "dog", "[SEP]"],
    ]
    assert (pair[0].cells[:, 1] == pair[1].cells[:, 3]).all()  # “dog” is highlighted in both.
    change = float((first[[0, 3, 2, 1, 4]] - second).abs().max())
    _, without, with_positions, largest = numbers(paragraph(site, "Each column shows"))
    assert without < 1e-5
    if text == permutation.WITH:
        assert with_positions == pytest.approx(change, rel=0.05)
        assert largest == pytest.approx(float(first.abs().max()), rel=0.05)
    else:
        assert change < 1e-5


@pytest.mark.parametrize("model", [ENCODER, DECODER])
def test_every_order_contains_all_tokens(site: AppTest, model: str):
    open_page(site, VIEW, position_text=TEXT, position_model=model)
    for how in permutation.ORDERS:
        site.radio("position_order").set_value(how).run()
        assert not site.exception
        ((first, second),) = pictures(site)
        before, after = first.panel["columns"], second.panel["columns"]
        assert sorted(before) == sorted(after)
        assert before != after
        columns = [after.index(label) for label in before]
        np.testing.assert_allclose(second.values[:, columns], first.values, atol=2e-5)


def test_long_text_is_windowed(site: AppTest):
    text = " ".join(f"word{n}" for n in range(9))
    open_page(site, VIEW, position_text=text, position_first="3")
    tokens = bundled_model(ENCODER).tokenizer.encode(text)
    ((first, _),) = pictures(site)
    assert first.panel["columns"] == list(tokens.labels[3:15])


@pytest.mark.parametrize(("width", "position", "distance"), [(8, 0, 0), (128, 31, 20)])
def test_sinusoids(site: AppTest, width: int, position: int, distance: int):
    open_page(
        site,
        VIEW,
        position_width=str(width),
        position_row=str(position),
        position_apart=str(distance),
    )
    places, column = np.arange(32)[:, None], np.arange(width)
    angles = places / 10_000 ** (column // 2 * 2 / width)
    table = np.where(column % 2 == 0, np.sin(angles), np.cos(angles))
    header, values = heatmaps(site)[0]
    np.testing.assert_allclose(values, table, atol=1e-5)
    assert header["title"] == "position vectors"
    rows = chart(site, "from", "product").rows
    assert set(rows["from"]) == {f"position {n}" for n in (0, position, 31)}
    for row in rows.sample(20, random_state=0).itertuples():
        start = int(row[1].split()[1])
        assert row.product == pytest.approx(table[start] @ table[start + row.distance], abs=1e-4)
    gap, product, spread, low, high = numbers(paragraph(site, "Any two positions"))
    products = [float(table[i] @ table[i + distance]) for i in range(32 - distance)]
    assert gap == distance
    assert product == pytest.approx(products[0], abs=1e-4)
    assert max(products) - min(products) < 1e-9
    assert spread < 1e-4
    means = [float(table[0] @ table[k]) for k in range(32)]
    assert (low, high) == pytest.approx((min(means), max(means)), abs=0.0051)


def heatmaps(site: AppTest) -> list[tuple[dict, np.ndarray]]:
    """The page's heatmaps, without its tensor drawings."""
    return [
        (header, np.frombuffer(body, "<f4").reshape(header["rows"], header["columns"]))
        for header, body in drawings(site)
        if "panels" not in header
    ]


@pytest.mark.parametrize(("model", "count"), [(ENCODER, 64), (DECODER, 16)])
def test_learned_positions(site: AppTest, model: str, count: int):
    """SmolLM2 has no learned positions, so the page names the model it shows instead."""
    open_page(
        site, VIEW, position_part=sections.LEARNED, position_count=str(count), position_model=model
    )
    table = bundled_model(ENCODER).core.positions
    rows = table[:count]
    expected = cosine_similarity(rows[:, None], rows[None], dim=-1)
    ((header, values),) = heatmaps(site)
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert header["rows"] == header["columns"] == count
    bars = chart(site, "table", "mean").rows
    own = bars[bars["table"] != "sinusoids"]
    assert any("MiniLM" in name for name in own["table"])
    for name, measure in (("mean", torch.mean), ("low", torch.min), ("high", torch.max)):
        diagonals = [float(measure(expected.diagonal(d))) for d in range(count)]
        np.testing.assert_allclose(own[name], diagonals, atol=1e-5)
    text = paragraph(site, "Neighbors have a mean cosine")
    near, _, far, at_far, spread, n_rows, width, beyond = numbers(text)
    assert near == pytest.approx(float(expected.diagonal(1).mean()), abs=0.0051)
    assert far == count // 2
    assert at_far == pytest.approx(float(expected.diagonal(count // 2).mean()), abs=0.0051)
    spreads = [float(expected.diagonal(d).max() - expected.diagonal(d).min()) for d in range(count)]
    assert spread == pytest.approx(max(spreads), abs=0.0051)
    assert (n_rows, width, beyond) == (*table.shape, table.shape[0])


def smollm2_scores(layer: int, head: int) -> torch.Tensor:
    """The scaled scores of a head on the text, as the model computes them, (T, T)."""
    model = bundled_model(DECODER)
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.encode(TEXT).ids])
        record = model.core(ids, record=True).records[layer]
    return record.q[0, head] @ record.k[0, head // 3].T / 8


@pytest.mark.parametrize(("layer", "head", "query", "key"), [(16, 0, 4, 3), (3, 2, 5, 1)])
def test_score_depends_only_on_the_distance(
    site: AppTest, layer: int, head: int, query: int, key: int
):
    open_page(
        site,
        VIEW,
        position_part=sections.ROTARY,
        position_text=TEXT,
        position_layer=str(layer),
        position_head=str(head),
        position_query=str(query),
        position_key=str(key),
        position_place=str(key if key in rotation.N_POSITIONS else 0),
        position_distance=str(query - key),
    )
    assert not site.exception
    expected = float(smollm2_scores(layer, head)[query, key])
    visible = []
    for place in (0, 20, 4000):
        site.select_slider("position_place").set_value(place).run()
        text = paragraph(site, "The score is")
        score, at, behind, change, farthest, low, high = numbers(text)
        assert (at, behind, farthest) == (place, place + query - key, 4000)
        assert score == pytest.approx(expected, abs=6e-4 + 1e-3 * (place > 1000))
        assert change < 2e-3
        pairs = plain_tables(site)[0]
        assert pairs["adds to the score"].sum() == pytest.approx(score, abs=2e-3)
        between = pairs["rotation of the query"] - pairs["rotation of the key"]
        np.testing.assert_allclose(between, pairs["angle between them"], rtol=1e-3, atol=0.02)
        visible.append(pairs["rotation of the key"].iloc[0])
    assert visible == [0, 20, 4000]
    scores = chart(site, "key at", "score").rows
    assert set(scores["key at"]) == {"position 0", "position 4000"}
    by_start = scores.pivot(index="distance", columns="key at", values="score")
    np.testing.assert_allclose(by_start["position 0"], by_start["position 4000"], atol=2e-3)
    assert (low, high) == pytest.approx(
        (by_start["position 0"].min(), by_start["position 0"].max()), abs=0.051
    )
    assert by_start["position 0"][query - key] == pytest.approx(expected, abs=1e-4)
    site.slider("position_distance").set_value(query - key + 3).run()
    other = numbers(paragraph(site, "The score is"))[0]
    assert other == pytest.approx(by_start["position 0"][query - key + 3], abs=6e-3)
    assert high - low > 1


def test_arrows_are_rotated_pairs(site: AppTest):
    open_page(site, VIEW, position_part=sections.ROTARY, position_place="0")
    before = chart(site, "what", "x").rows.query("what == 'key'").set_index("pair")
    site.select_slider("position_place").set_value(5).run()
    after = chart(site, "what", "x").rows.query("what == 'key'").set_index("pair")
    assert list(before.index) == ["pair 0", "pair 4", "pair 8", "pair 16"]
    for name in before.index:
        angle = math.degrees(5 * 100_000 ** (-int(name.split()[1]) / 32))
        turned_by = (after["angle"][name] - before["angle"][name] - angle) % 360
        assert min(turned_by, 360 - turned_by) < 0.01
        assert after["length"][name] == pytest.approx(before["length"][name], rel=1e-5)


def test_beyond_the_trained_length(site: AppTest):
    factor, length, scaling = 8, 8192, "YaRN"
    open_page(
        site,
        VIEW,
        position_part=sections.LONGER,
        position_text=TEXT,
        position_layer="16",
        position_head="0",
        position_factor=str(factor),
        position_scaling=scaling,
    )
    assert not site.exception
    assert numbers(paragraph(site, "The model was trained"))[:3] == [length, 12, 32]
    reach = chart(site, "times", "turns").rows.pivot(
        index="pair", columns="scaling", values="times"
    )
    table = plain_tables(site)[0].set_index("scaling")
    plain = 1 / 100_000 ** (torch.arange(32) / 32)
    rope_types = {
        "linear": {"rope_type": "linear", "factor": 8.0},
        "dynamic NTK": {"rope_type": "dynamic", "factor": 8.0},
        "YaRN": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": length},
        "Llama 3": {
            "rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": length,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        },
    }  # fmt: skip
    for name, parameters in rope_types.items():
        kind = parameters["rope_type"]
        longest = length if kind in ("linear", "dynamic") else factor * length
        config = LlamaConfig(
            head_dim=64,
            max_position_embeddings=longest,
            rope_parameters=parameters | {"rope_theta": 100_000.0},
        )
        theirs, cosines = ROPE_INIT_FUNCTIONS[kind](config, seq_len=factor * length)
        np.testing.assert_allclose(reach[name], factor * theirs / plain, rtol=1e-4)
        assert table["difference from transformers"][name] < 1e-5
        assert table["cosines ×"][name] == pytest.approx(cosines, abs=6e-4)
        assert table["slowest pair ÷"][name] == pytest.approx(
            float(plain[-1] / theirs[-1]), rel=1e-3
        )
        assert (table["difference with a cache"][name] > 0.1) == (name == "dynamic NTK")
    np.testing.assert_allclose(reach["none"], factor, rtol=1e-5)
    curves = chart(site, "scaling", "score").rows
    text = paragraph(site, "Within the trained length")
    low, high, times, without, with_scaling = numbers(text)[:5]
    trained = curves[(curves["scaling"] == "none") & (curves["distance"] < length)]["score"]
    assert (low, high, times) == pytest.approx((trained.min(), trained.max(), factor), abs=0.051)
    for name, outside in (("none", without), (scaling, with_scaling)):
        scores = curves[curves["scaling"] == name]["score"]
        beyond = max(scores.max() - trained.max(), trained.min() - scores.min(), 0)
        assert outside == pytest.approx(beyond, abs=0.051)


def test_single_token_has_only_one_order(site: AppTest):
    """[CLS] and [SEP], which the tokenizer adds, keep their positions."""
    open_page(site, VIEW, position_text="dog")
    assert not site.exception
    assert messages(site)


@pytest.mark.usefixtures("only_a_small_model")
def test_gpt2_has_no_rotary_positions(site: AppTest):
    open_whole_page(site, VIEW, position_text="Nine bells")
    assert not site.exception
    assert len(messages(site)) == 1  # A message replaces the rotary positions.
    titles = [header["title"] for header, _ in heatmaps(site)]
    assert titles[1] == "cosines of learned position vectors"
    assert pictures(site)
