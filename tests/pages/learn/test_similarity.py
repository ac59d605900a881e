"""The Similarity page: its numbers, its controls and its links."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.testing import assert_close

from pages.learn.similarity import dims, sections, words
from tests.helpers.apptest import maps, messages, open_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.charts import drawn_charts
from ui.text.formatting import percent
from ui.widgets import controls

VIEW = "pages/learn/similarity/page.py"


def page_text(site: AppTest) -> str:
    """All sentences on the page, without bidirectional control characters."""
    return re.sub("[\u2068\u2069]", "", "\n".join(text.value for text in site.text))


def strip_isolates(text: str) -> str:
    return re.sub("[\u2068\u2069]", "", text)


def table_of(site: AppTest, column: str) -> pd.DataFrame:
    (results,) = [table for table in plain_tables(site) if column in table]
    return results


class ReferenceLayer:
    """A layer of a bundled model and one of its heads, without the site's code."""

    def __init__(self, name: str, text: str, layer: int, head: int) -> None:
        model = bundled_model(name)
        self.ids = list(model.tokenizer.encode(text).ids)
        with torch.inference_mode():
            result = model.core(torch.tensor([self.ids]), record=True).layers[layer]
        record = result.attention
        kv_head = head // (record.q.shape[1] // record.k.shape[1])
        self.x, self.q = result.attention_reads[0], record.q[0, head]
        self.k, self.v = record.k[0, kv_head], record.v[0, kv_head]
        self.layer_q = record.q[0]
        self.layer_k = record.k[0].repeat_interleave(len(self.layer_q) // len(record.k[0]), 0)
        size = len(self.x)
        self.allowed = torch.ones(size, size, dtype=torch.bool)
        if name == DECODER:
            self.allowed = self.allowed.tril()

    def weights(self, scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
        hidden = scores.masked_fill(~self.allowed, -torch.inf)
        return torch.softmax(hidden, dim=dim).nan_to_num(0.0)


def token_vectors(name: str) -> torch.Tensor:
    core = bundled_model(name).core
    return core.token_vectors(torch.arange(core.config.vocab_size))


def open_similarity(site: AppTest, part: str, name: str, layer: int, head: int) -> None:
    values = {"part": part, "model": name, "layer": str(layer), "head": str(head)}
    open_page(site, VIEW, **{f"similarity_{key}": value for key, value in values.items()})


@pytest.mark.parametrize(("name", "word"), [(DECODER, 11), (ENCODER, 13)])
def test_fan_chart_and_both_lists(site: AppTest, name: str, word: int):
    open_page(site, VIEW, similarity_model=name, similarity_word=str(word))
    table, model = token_vectors(name), bundled_model(name)
    ids = model.tokenizer.encode(controls.ANIMAL).ids
    x = table[ids[word]]
    dots, cosines = table @ x, torch.cosine_similarity(table, x[None], dim=-1)
    fan, by_cosine, by_dot = drawn_charts(site)[:3]
    for chart, values in ((by_cosine, cosines), (by_dot, dots)):
        order = [i for i in values.argsort(descending=True).tolist() if i != ids[word]]
        assert_close(
            torch.tensor(chart.rows["value"].tolist()),
            values[order[: words.NEIGHBOURS]],
            atol=1e-4,
            rtol=1e-5,
        )
    points = fan.layers[1]
    in_text = points[points["which"] == words.IN_TEXT]
    others = torch.tensor([ids[i] for i in range(len(ids)) if i != word])
    for column, values in (
        ("dot", dots),
        ("cosine", cosines),
        ("length", table.norm(dim=-1)),
        ("along", dots / x.norm()),
    ):
        actual = torch.tensor(in_text[column].tolist())
        assert_close(actual, values[others], atol=1e-4, rtol=1e-4)
    corners = np.hypot(points["along"], points["across"])
    np.testing.assert_allclose(corners, points["length"], rtol=1e-4)
    larger = int((dots > dots[ids[word]]).sum())
    assert (f"{larger:,} tokens" if larger else "No other token") in page_text(site)
    sentence = next(line for line in page_text(site).splitlines() if " × " in line)
    length, other, cosine, dot = map(
        float, re.search(r"= ([\d.]+) × ([\d.]+) × (-?[\d.]+) = (-?[\d.]+):", sentence).groups()
    )
    best = int(others[cosines[others].argmax()])
    assert length == pytest.approx(float(x.norm()), abs=0.006)
    assert other == pytest.approx(float(table[best].norm()), abs=0.006)
    assert cosine == pytest.approx(float(cosines[best]), abs=6e-4)
    assert dot == pytest.approx(float(dots[best]), abs=0.006)


def test_lists_differ_because_long_vectors_score_higher(site: AppTest):
    open_page(site, VIEW)
    points = drawn_charts(site)[0].layers[1].groupby("which")["length"].mean()
    assert points[words.BY_DOT] > 1.5 * points[words.BY_COSINE]


@pytest.mark.parametrize(("name", "layer", "head"), [(DECODER, 13, 8), (ENCODER, 3, 1)])
def test_five_reasons(site: AppTest, name: str, layer: int, head: int):
    word = 8
    by_name = {"model": name, "layer": str(layer), "head": str(head), "word": str(word)}
    open_page(site, VIEW, **{f"similarity_{key}": value for key, value in by_name.items()})
    real = ReferenceLayer(name, controls.ANIMAL, layer, head)
    (_, plain_weights), (_, weights), (header, rows) = maps(site)
    expected = real.weights(real.x @ real.x.T)
    np.testing.assert_allclose(plain_weights, expected, atol=1e-4)
    scores = real.q @ real.k.T
    np.testing.assert_allclose(weights, real.weights(scores * len(real.q[0]) ** -0.5), atol=1e-5)
    all_scores = real.layer_q @ real.layer_k.mT * real.q.shape[1] ** -0.5
    heads = real.weights(all_scores)
    np.testing.assert_allclose(rows, torch.cat([expected[word][None], heads[:, word]]), atol=1e-4)
    assert header["rowLabels"][:2] == ["x·xᵀ", "head 0"]

    table = table_of(site, "softmax(x·xᵀ)")
    without, with_matrices = (
        table.iloc[:, column].map(strip_isolates).tolist() for column in (1, 2)
    )
    cosines = torch.cosine_similarity(real.x[:, None], real.x[None], dim=-1)
    nearest = int(cosines[word].index_fill(0, torch.tensor([word]), -2.0).argmax())
    labels = header["labels"]
    assert f"“{labels[nearest]}”" in without[0]
    for scores_, weights_, sentence in (
        (real.x @ real.x.T, expected, without[1]),
        (scores, torch.tensor(weights), with_matrices[1]),
    ):
        off = ~torch.eye(len(scores_), dtype=torch.bool)
        size = (scores_.abs() + scores_.T.abs())[off].sum()
        share = float((scores_ - scores_.T)[off].abs().sum() / size)
        own = weights_.diagonal()
        first = int((weights_.argmax(-1) == torch.arange(len(own))).sum())
        for number in (f"{share:.3f}", percent(float(own.mean())), f"{first} of {len(own)}"):
            assert number in sentence
    n_heads = len(heads)
    apart = [
        float((heads[a] - heads[b]).abs().sum(-1).mean() / 2)
        for a in range(n_heads)
        for b in range(a)
    ]
    assert f"{sum(apart) / len(apart):.0%}" in with_matrices[2]
    config = bundled_model(name).core.config
    assert f"{3 * config.d_model * config.d_head:,}" in with_matrices[3]
    assert without[4].startswith(f"{config.d_model} ")
    assert with_matrices[4].startswith(f"{config.d_head} ")


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_effect_of_the_matrices(site: AppTest, name: str):
    view = {"similarity_part": sections.MATRICES, "similarity_model": name}
    open_page(site, VIEW, similarity_layer="2", similarity_head="5", **view)
    real = ReferenceLayer(name, controls.ANIMAL, 2, 5)
    heatmaps = [values for _, values in maps(site)]
    scores = [real.x @ real.x.T, real.k @ real.k.T, real.q @ real.k.T]
    for values, expected in zip(heatmaps, scores, strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-3, rtol=1e-4)
    table = table_of(site, "asymmetry").set_index("scores")
    assert table["asymmetry"].tolist()[:3] == [0, 0, 0]
    assert table["asymmetry"].iloc[3] > 0.05
    scaled = [
        scores[0],
        scores[0] * real.x.shape[1] ** -0.5,
        *(of * real.k.shape[1] ** -0.5 for of in scores[1:]),
    ]
    own = [float(real.weights(of).diagonal().mean()) for of in scaled]
    np.testing.assert_allclose(table["weight on itself"], own, atol=6e-4)
    sizes = real.x.shape[1] * real.k.shape[1]
    assert table["learned numbers"].tolist() == [0, 0, sizes, 2 * sizes]
    context = real.weights(scores[0]) @ real.x
    mean = float(torch.cosine_similarity(context, real.x, dim=-1).mean())
    assert f"{mean:.3f}" in page_text(site)


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_another_text_changes_weights_but_no_parameter(site: AppTest, name: str):
    layer, head = (13, 8) if name == DECODER else (3, 1)
    open_similarity(site, sections.TEXTS, name, layer, head)
    first, second = (
        ReferenceLayer(name, text, layer, head) for text in (controls.ANIMAL, sections.OTHER)
    )
    table = table_of(site, "tensor").set_index("tensor")["numbers that differ"]
    assert [text.split(" ")[0] for text in table[:3]] == ["0", "0", "0"]
    both = [one.weights(one.q @ one.k.T * one.q.shape[1] ** -0.5) for one in (first, second)]
    changed = ((both[0] - both[1]).abs() > 1e-5)[first.allowed]
    assert table["weights"] == f"{int(changed.sum())} of {len(changed)}"
    if name == DECODER:  # “wide” is the last token, so only its own row sees it.
        assert int(changed.sum()) == len(first.ids)
    else:
        assert int(changed.sum()) > len(changed) / 2
    site.text_input("similarity_other").set_value("Two words").run()
    assert not site.exception
    site.text_input("similarity_other").set_value(controls.ANIMAL).run()
    assert set(table_of(site, "tensor")["numbers that differ"].str[:2]) == {"0 "}
    site.text_input("similarity_other").set_value("word " * 140).run()
    assert not site.exception
    assert messages(site)


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_softmax_over_each_dimension(site: AppTest, name: str):
    layer, head = (13, 8) if name == DECODER else (3, 1)
    open_similarity(site, sections.DIM, name, layer, head)
    real = ReferenceLayer(name, controls.ANIMAL, layer, head)
    scores = real.layer_q @ real.layer_k.mT * real.q.shape[1] ** -0.5
    for choice, dim in dims.CHOICES.items():
        site.button_group("similarity_dim").set_value(choice).run()
        weights = real.weights(scores, dim)
        np.testing.assert_allclose(maps(site)[-1][1], weights[head], atol=1e-5)
        sums = drawn_charts(site)[-1].rows["value"]
        np.testing.assert_allclose(sums, weights[head].sum(-1), atol=1e-5)
        table = table_of(site, "a row sums to").set_index("softmax")
        (row,) = [table.loc[name] for name in table.index if name.startswith(choice)]
        column = {-1: "a row sums to", -2: "a column sums to", -3: "all heads sum to"}[dim]
        assert float(row[column]) == 1.0
        rows = weights[head].sum(-1)
        low, high = (f"{float(of):.2f}" for of in (rows.min(), rows.max()))
        if dim != -1:
            assert row["a row sums to"] == f"{low} to {high}"


def test_first_decoder_token_attends_only_to_itself(site: AppTest):
    open_page(site, VIEW, similarity_word="0")
    assert not site.exception
    assert table_of(site, "softmax(x·xᵀ)").iloc[3, 1].startswith("0 ")
