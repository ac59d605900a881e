"""Compare the Attention without the matrix page to tensors computed without its code."""

import math
import re

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn.functional import scaled_dot_product_attention

from pages.learn.attention_without_the_matrix import sections, tile_walk
from tests.helpers.apptest import maps, number_of, open_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.charts import drawn_charts
from ui.widgets import controls

VIEW = "pages/learn/attention_without_the_matrix/page.py"
PREFIX = "attention_without_the_matrix"


def settings(**values: object) -> dict[str, str]:
    return {f"{PREFIX}_{name}": str(value) for name, value in values.items()}


def page_text(site: AppTest) -> str:
    """All sentences on the page, without bidirectional control characters."""
    return re.sub("[\u2068\u2069]", "", "\n".join(text.value for text in site.text))


def table_of(site: AppTest, column: str) -> pd.DataFrame:
    (results,) = [table for table in plain_tables(site) if column in table]
    return results


class ReferenceHead:
    """A head of a bundled model on a text, computed without the site's code."""

    def __init__(self, name: str, layer: int, head: int, text: str = controls.ANIMAL) -> None:
        model = bundled_model(name)
        ids = torch.tensor([list(model.tokenizer.encode(text).ids)])
        with torch.inference_mode():
            record = model.core(ids, record=True).layers[layer].attention
        kv_head = head // (record.q.shape[1] // record.k.shape[1])
        self.q, self.k, self.v = record.q[0, head], record.k[0, kv_head], record.v[0, kv_head]
        self.weights = record.weights[0, head]
        self.causal = name == DECODER
        scores = self.q @ self.k.T / math.sqrt(self.q.shape[1])
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        self.scores = scores.masked_fill(future, -torch.inf) if self.causal else scores


CASES = [(DECODER, 13, 8), (ENCODER, 3, 1)]


@pytest.mark.parametrize(("name", "layer", "head"), CASES)
def test_rows_at_every_step(site: AppTest, name: str, layer: int, head: int):
    """Tiles of 4 × 8, row by row: recompute m, l and o from all scores so far."""
    real = ReferenceHead(name, layer, head)
    size = len(real.q)
    view = settings(model=name, layer=layer, head=head, queries=4, keys=8, step=1)
    open_page(site, VIEW, **view)
    places = [
        (row, column)
        for row in range(0, size, 4)
        for column in range(0, size, 8)
        if not real.causal or column <= row + 3
    ]
    assert site.slider(f"{PREFIX}_step").max == len(places)
    for number in (1, 2, len(places)):
        site.slider(f"{PREFIX}_step").set_value(number).run()
        row, column = places[number - 1]
        queries, visible = slice(row, row + 4), slice(0, column + 8)
        scores = real.scores[queries, visible]
        m = scores.amax(-1)
        terms = torch.exp(scores - m[:, None])
        factors = table_of(site, "factor")
        for line, (new_m, new_l) in enumerate(zip(m, terms.sum(-1), strict=True)):
            for cell, value in ((factors["m"][line], new_m), (factors["l"][line], new_l)):
                after = float(cell.rpartition("→ ")[2].replace("−", "-"))
                assert after == pytest.approx(float(value), abs=6e-4)
        (header, output), *_ = maps(site)
        np.testing.assert_allclose(output, terms @ real.v[visible], atol=1e-4)
        cells = drawn_charts(site)[0].layers[1]
        in_tile = terms[:, column:]
        np.testing.assert_allclose(cells["term"], in_tile[scores[:, column:].isfinite()], atol=1e-5)
        assert f"queries {row} to {min(row + 4, size) - 1} and keys {column} to" in page_text(site)


@pytest.mark.parametrize("order", [tile_walk.ORDERS[0], tile_walk.ORDERS[-1]])
def test_any_order_matches_torch(site: AppTest, order: str):
    real = ReferenceHead(DECODER, 5, 2)
    view = settings(layer=5, head=2, order=order, queries=8, keys=2)
    open_page(site, VIEW, **view)
    last = int(site.slider(f"{PREFIX}_step").max)
    site.slider(f"{PREFIX}_step").set_value(last).run()
    expected = scaled_dot_product_attention(
        real.q[None], real.k[None], real.v[None], is_causal=True
    )[0]
    table = table_of(site, "length of o / l")
    np.testing.assert_allclose(table["length of o / l"], expected.norm(dim=-1), atol=1e-4)
    most = re.search(r"at most (.+)\.$", page_text(site), re.MULTILINE).group(1)
    assert number_of(most) < 1e-5
    states = drawn_charts(site)[0].layers[0]["state"].value_counts()
    assert states[tile_walk.NOW] == 1
    assert states[tile_walk.USED] == last - 1
    assert states[tile_walk.SKIPPED] == 12 - last
    assert f"{12 - last} of 12" in page_text(site)


def test_page_opens_at_a_tile_that_rescales(site: AppTest):
    open_page(site, VIEW)
    factors = [text for text in table_of(site, "factor")["factor"] if text != "first tile"]
    assert any(0 < float(factor) < 1 for factor in factors)
    old, new, factor = map(
        float, re.search(r"exp\((\S+) − (\S+)\) = (\S+) before", page_text(site)).groups()
    )
    assert factor == pytest.approx(math.exp(old - new), abs=6e-3)


def test_short_text_fits_into_one_tile(site: AppTest):
    open_page(site, VIEW, **settings(text="Two cats sat", queries=32, keys=32))
    assert not site.exception
    assert [slider for slider in site.slider if slider.key == f"{PREFIX}_step"] == []


def test_smaller_tiles_and_back(site: AppTest):
    """A step that doesn't exist with larger tiles falls back to the last one."""
    open_page(site, VIEW, **settings(queries=2, keys=2, step=20))
    assert site.slider(f"{PREFIX}_step").value == 20
    site.select_slider(f"{PREFIX}_queries").set_value(8).run()
    assert not site.exception
    slider = site.slider(f"{PREFIX}_step")
    assert slider.value <= slider.max


def test_bytes_moved(site: AppTest):
    n_bytes = 2
    view = settings(tokens=4096, many_queries=32, many_keys=256, numbers="16-bit numbers")
    open_page(site, VIEW, **view)
    size, head_size = 4096, bundled_model(DECODER).core.config.d_head
    full_matrix = n_bytes * (4 * size**2 + 4 * size * head_size)
    keys = sum(math.ceil((start + 32) / 256) * 256 for start in range(0, size, 32))
    tiled = n_bytes * (2 * size * head_size + 2 * keys * head_size + 2 * size)
    table = drawn_charts(site)[-1].rows
    n_moved = table[table["tokens"] == size].set_index("how")["bytes"]
    assert n_moved.to_dict() == {"whole matrix": full_matrix, "tiles": tiled}
    assert f"{full_matrix / tiled:,.1f}" in page_text(site)
    pieces = table_of(site, "numbers")
    counts = pieces.groupby("how")["numbers"].sum() * n_bytes
    assert counts.to_dict() == {"whole matrix": full_matrix, "tiles": tiled}


@pytest.mark.parametrize(("name", "layer", "head"), CASES)
def test_weights_are_recomputed(site: AppTest, name: str, layer: int, head: int):
    view = settings(model=name, layer=layer, head=head, part=sections.KEPT, query=5)
    open_page(site, VIEW, **view)
    real = ReferenceHead(name, layer, head)
    table = table_of(site, "exp(score − m) / l")
    for column in ("exp(score − m) / l", "weight with the whole matrix"):
        np.testing.assert_allclose(table[column], real.weights[5], atol=2e-6)


@pytest.mark.parametrize(("name", "layer", "head"), CASES)
def test_backward_pass(site: AppTest, name: str, layer: int, head: int):
    view = settings(model=name, layer=layer, head=head, part=sections.BACK)
    open_page(site, VIEW, **view)
    real = ReferenceHead(name, layer, head)
    inputs = [of.clone().requires_grad_() for of in (real.q, real.k, real.v)]
    q, k, v = (of[None] for of in inputs)
    output = scaled_dot_product_attention(q, k, v, is_causal=real.causal)
    expected = torch.autograd.grad(output.square().sum() / 2, inputs)
    table = table_of(site, "gradient of")
    np.testing.assert_allclose(
        table["largest number"], [float(of.abs().max()) for of in expected], rtol=1e-4, atol=1e-4
    )
    assert (table["largest difference from autograd"] < 1e-4).all()
