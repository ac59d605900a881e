"""The Why several heads page: numbers computed without its code, and controls."""

import copy
import itertools
import re

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learn.why_several_heads import head_roles, two_heads
from tests.helpers.apptest import (
    maps,
    messages,
    open_page,
    open_whole_page,
    plain_tables,
    python_numbers,
)
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.charts import drawn_charts
from ui.text.formatting import percent
from ui.widgets import controls

VIEW = "pages/learn/why_several_heads/page.py"
TEXT = "Nine bells rang over the old harbour"
COST, LABOUR = "What a head costs", "Division of labour"
ALONE, CODE = "Left with one head", "The split in code"
HEADS = {DECODER: (11, 6, 1), ENCODER: (4, 2, 7)}  # Layer, first head, second head.


def open_several_heads(site: AppTest, model: str, part: str, **query: str) -> AppTest:
    layer, first, second = HEADS[model]
    parameters = {"text": TEXT, "model": model, "layer": layer, "head": first, "other": second}
    by_name = {f"why_several_heads_{name}": str(value) for name, value in parameters.items()}
    return open_page(site, VIEW, **by_name | {"why_several_heads_part": part} | query)


def record_layers(model: str, text: str = TEXT):
    """Ids and the record of every layer, computed without the site's code."""
    loaded = bundled_model(model)
    ids = torch.tensor([loaded.tokenizer.encode(text).ids])
    with torch.inference_mode():
        return loaded, ids, loaded.core(ids, record=True)


def contexts(model: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The maps of both heads, and the vector that each head adds for every key."""
    layer, *heads = HEADS[model]
    loaded, _, output = record_layers(model)
    record, out = output.records[layer], loaded.core.out_weight(layer)
    size, group = record.q.shape[-1], record.q.shape[1] // record.k.shape[1]
    values = [record.v[0, head // group] @ out[head * size : (head + 1) * size] for head in heads]
    return record.weights[0, heads], values


def percents(table: pd.DataFrame) -> list[list[int]]:
    return [[int(cell.rstrip("%")) for cell in row[1:]] for row in table.itertuples(index=False)]


@pytest.mark.parametrize("model", HEADS)
def test_two_maps_and_their_mean(site: AppTest, model: str):
    open_several_heads(site, model, COST)
    assert not site.exception
    weights, _ = contexts(model)
    layer, first, second = HEADS[model]
    heatmaps = maps(site)
    for (header, values), expected in zip(heatmaps, [*weights, weights.mean(dim=0)], strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-5)
        assert header["largest"] == pytest.approx(float(weights.max()), rel=1e-5)
        assert header["causal"] == (model == DECODER)
    titles = [header["title"] for header, _ in heatmaps]
    assert titles == [f"L{layer}H{first}", f"L{layer}H{second}", two_heads.AVERAGE]
    # The page opens on the last word.
    labels = heatmaps[0][0]["rowLabels"]
    (framed,) = heatmaps[0][0]["framedRows"]
    assert labels[framed] == "harbour"
    rows = drawn_charts(site)[0].rows
    for name, values in zip(titles, [*weights, weights.mean(dim=0)], strict=True):
        visible_rows = rows[rows["map"] == name]
        places = [labels.index(key) for key in visible_rows["token"]]
        assert places == sorted(places)
        np.testing.assert_allclose(visible_rows["weight"], values[framed][places], atol=1e-5)


@pytest.mark.parametrize("model", HEADS)
def test_what_one_head_misses(site: AppTest, model: str):
    open_several_heads(site, model, COST, why_several_heads_token="4")
    (a, b), (u, v) = contexts(model)
    both = a @ u + b @ v
    average = (a + b) / 2 @ (u + v)
    lengths = both.norm(dim=-1)
    expected = ((both - average).norm(dim=-1) / lengths).numpy()
    small, full = plain_tables(site)[:2]
    np.testing.assert_allclose(full[f"error of {two_heads.AVERAGE}"], expected, atol=6e-5)
    np.testing.assert_allclose(full["distance of both rows"], (a - b).abs().sum(-1) / 2, atol=6e-5)
    best = full[f"error of {two_heads.BEST}"]
    assert (best <= expected + 6e-5).all()
    total_error = float((both - average).norm() / both.norm())
    percentages, in_all = zip(*percents(small), strict=True)
    assert percentages == (round(100 * expected[4]), round(100 * best[4]))
    assert in_all[0] == round(100 * total_error)
    assert in_all[1] <= in_all[0]


def test_text_names_the_keys_of_both_heads(site: AppTest):
    open_page(site, VIEW)
    weights = record_layers(DECODER, controls.ARTIST)[2].records[9].weights[0]
    text = re.sub("[\u2068\u2069]", "", site.text[0].value)
    painted_weight, woman_weight = float(weights[4, 10, 2]), float(weights[1, 10, 7])
    assert f"“painted” in L9H4 ({percent(painted_weight)})" in text
    assert f"“woman” in L9H1 ({percent(woman_weight)})" in text
    means = [float((weights[4, 10, key] + weights[1, 10, key]) / 2) for key in (2, 7)]
    assert f"{percent(means[0])} and {percent(means[1])}" in text


@pytest.mark.parametrize(("model", "count"), [(DECODER, 6), (ENCODER, 1)])
def test_cost_of_heads(site: AppTest, model: str, count: int):
    open_several_heads(site, model, COST, why_several_heads_count=str(count))
    layer, loaded = HEADS[model][0], bundled_model(model)
    width, n = loaded.core.config.d_model, len(loaded.tokenizer.encode(TEXT).ids)
    prices = plain_tables(site)[2]
    last_column = prices.iloc[:, -1].tolist()
    assert last_column[0] == str(width // count)
    assert last_column[1] == f"{4 * width**2:,}"
    assert last_column[2] == f"{count * n**2:,}"
    rows = drawn_charts(site)[1].rows.set_index("heads")
    x = torch.nn.functional.normalize(record_layers(model)[2].hidden_states[layer][0], dim=-1)
    cosines = torch.stack([x[i] @ x[j] for i, j in itertools.combinations(range(n), 2)])
    theory = ((1 + cosines**2) * count / width).mean().sqrt()
    assert rows.loc[count, "theory"] == pytest.approx(float(theory), rel=1e-4)
    assert last_column[4] == f"{rows.loc[count, 'theory']:.3f}"
    assert last_column[3] == f"{rows.loc[count, 'measured']:.3f}"
    assert (rows["low"] < rows["measured"]).all()
    assert (rows["measured"] < rows["high"]).all()
    # The mean of 48 samples, where the largest heads have one score each.
    assert (rows["measured"] / rows["theory"]).between(0.75, 1.25).all()
    assert rows.index[0] == 1
    assert all(width % heads == 0 for heads in rows.index)


@pytest.mark.parametrize("model", HEADS)
def test_division_of_labor(site: AppTest, model: str):
    layer = 2
    open_several_heads(site, model, LABOUR, why_several_heads_compared=str(layer))
    weights = record_layers(model)[2].records[layer].weights[0]
    n_heads, n = weights.shape[:2]
    causal = model == DECODER
    rows = weights[:, int(causal) :]  # The first query of a decoder has only one key.
    expected = [[float((a - b).abs().sum(-1).mean() / 2) for a in rows] for b in rows]
    header, distances = maps(site)[3]
    np.testing.assert_allclose(distances, expected, atol=1e-5)
    assert header["axes"][0][0] == header["axes"][1][0] == "head"
    shares = drawn_charts(site)[1].rows.pivot(index="job", columns="head", values="share")
    diagonal = rows.diagonal(int(causal), -2, -1).mean(-1)
    np.testing.assert_allclose(shares.loc["itself"], diagonal, atol=1e-5)
    previous = weights.diagonal(-1, -2, -1).mean(-1)
    np.testing.assert_allclose(shares.loc["the previous token"], previous, atol=1e-5)
    np.testing.assert_allclose(shares.loc["the first token"], rows[..., 0].mean(-1), atol=1e-5)
    assert ("the next token" in shares.index) == (not causal)
    message = next(text.value for text in site.text if "differ most" in text.value)
    assert f"H{int(previous.argmax())} ({float(previous.max()):.0%}" in message
    pairs = {pair: expected[pair[0]][pair[1]] for pair in itertools.combinations(range(n_heads), 2)}
    far = max(pairs, key=lambda pair: pairs[pair])
    assert f"H{far[0]} and H{far[1]} differ most ({pairs[far]:.2f})" in message
    assert f"{np.mean(list(pairs.values())):.2f}" in message


def test_default_layer_has_the_most_different_heads(site: AppTest):
    open_page(site, VIEW, why_several_heads_part=LABOUR)
    means = []
    for record in record_layers(DECODER, controls.ARTIST)[2].records:
        rows = record.weights[0, :, 1:]
        distances = [(a - b).abs().sum(-1).mean() / 2 for a, b in itertools.combinations(rows, 2)]
        means.append(float(torch.stack(distances).mean()))
    assert site.selectbox("why_several_heads_compared").value == str(int(np.argmax(means)))


def test_layer_with_only_one_head_left(site: AppTest):
    layer = 2
    open_several_heads(site, ENCODER, ALONE, why_several_heads_compared=str(layer))
    loaded, ids, output = record_layers(ENCODER)
    n_heads, size = loaded.core.config.n_heads, loaded.core.config.d_head
    rows = drawn_charts(site)[1].rows

    def output_change(*off: int) -> float:
        changed = copy.deepcopy(loaded.core)
        with torch.inference_mode():
            for head in off:
                columns = slice(head * size, (head + 1) * size)
                changed.blocks[layer].attention.out.matrix[columns] = 0.0
            hidden = changed(ids).hidden[0]
        return float(1 - torch.cosine_similarity(hidden, output.hidden[0], dim=-1).mean())

    for name, sets in (
        (
            head_roles.ALONE,
            [[h for h in range(n_heads) if h != kept] for kept in range(n_heads)],
        ),
        (head_roles.OFF, [[head] for head in range(n_heads)]),
    ):
        actual = rows[rows["heads"] == name].set_index("head")["lost"]
        for head in (0, 5, n_heads - 1):
            assert actual[head] == pytest.approx(output_change(*sets[head]), rel=1e-3, abs=1e-6)
    line = drawn_charts(site)[1].layers[0]["lost"]
    assert line.tolist() == [pytest.approx(output_change(*range(n_heads)), rel=1e-3)]
    assert f"{2 * n_heads + 1} runs" in str(site.get("progress")[0].proto)


@pytest.mark.parametrize("model", HEADS)
def test_split_in_code(site: AppTest, model: str):
    open_several_heads(site, model, CODE)
    config, layer = bundled_model(model).core.config, HEADS[model][0]
    n, heads, size = (
        len(bundled_model(model).tokenizer.encode(TEXT).ids),
        config.n_heads,
        config.d_head,
    )
    table = plain_tables(site)[2]
    assert table["shape"].tolist() == [
        f"({n}, {config.d_model}) → ({n}, {heads * size})",
        f"({n}, {heads}, {size})",
        f"({heads}, {n}, {size})",
    ]
    message = next(text.value for text in site.text if "largest difference" in text.value)
    assert float(python_numbers(message.rstrip(".")).rsplit(" ", 1)[1]) < 1e-5
    queries = [element.proto.query_string for element in site.get("page_link")]
    assert any(f"shapes_of={model}" in q and f"shapes_layer={layer}" in q for q in queries)


def test_same_head_twice_loses_nothing(site: AppTest):
    layer, first, _ = HEADS[DECODER]
    open_whole_page(
        site,
        VIEW,
        why_several_heads_layer=str(layer),
        why_several_heads_head=str(first),
        why_several_heads_other=str(first),
    )
    assert not site.exception
    assert percents(plain_tables(site)[0]) == [[0, 0], [0, 0]]
    assert set(drawn_charts(site)[0].rows["map"]) == {f"L{layer}H{first}", two_heads.AVERAGE}


def test_second_head_differs_from_the_selected_head(site: AppTest):
    open_page(site, VIEW, why_several_heads_head="1")
    assert [header["title"] for header, _ in maps(site)][:2] == ["L9H1", "L9H4"]


def test_single_token_explains_what_is_missing(site: AppTest):
    open_whole_page(site, VIEW, why_several_heads_text="x")
    assert not site.exception
    assert len(maps(site)) == 3
    assert len(messages(site)) >= 2


def test_head_count_that_the_new_width_does_not_allow(site: AppTest):
    open_several_heads(site, DECODER, COST)
    site.select_slider("why_several_heads_count").set_value(18).run()  # 576 / 18 = 32
    site.selectbox("why_several_heads_model").set_value(ENCODER).run()
    assert not site.exception
    assert site.select_slider("why_several_heads_count").value == 12  # The model's own head count.


def test_new_text_selects_its_last_word(site: AppTest):
    open_several_heads(
        site, DECODER, LABOUR, why_several_heads_token="6", why_several_heads_compared="29"
    )
    site.text_input("why_several_heads_text").set_value("Two words").run()
    assert not site.exception
    last = site.select_slider("why_several_heads_token").value
    assert maps(site)[0][0]["framedRows"] == [last]
    assert last == len(maps(site)[0][0]["rowLabels"]) - 1
    # This encoder has six layers.
    site.selectbox("why_several_heads_model").set_value(ENCODER).run()
    assert not site.exception
    header = maps(site)[0][0]
    # The [SEP] after the last word isn't selected.
    assert header["rowLabels"][header["framedRows"][0]] == "words"
    assert site.selectbox("why_several_heads_compared").value == "5"


@pytest.mark.usefixtures("only_a_small_model")
def test_small_model(site: AppTest):
    open_whole_page(site, VIEW)
    assert not site.exception
    assert not messages(site)
    header, distances = maps(site)[3]
    assert distances.shape == (3, 3)
    assert [row["heads"] for row in drawn_charts(site)[1].rows.to_dict("records")] == [1, 2, 3]
