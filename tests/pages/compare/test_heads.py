"""The Heads page: all heads, the open head and its downloads."""

import json
import zlib
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from attention_core import AttentionRecord
from pages.compare.heads import choices, downloads, stages, statistics, values
from pages.compare.heads.values import CONTRIBUTIONS, MapOptions
from serving import runs
from serving.heads import strongest_tokens
from serving.models import available
from tests.helpers.apptest import open_whole_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.drawn_tensors import parse_panels, unpack_drawing
from ui.widgets import head_pairs
from ui.widgets.head_choice import HeadChoice

HEADS = "pages/compare/heads/page.py"
TEXT = "Two kettles, one lamp: sing!"


def open_heads(site: AppTest, **query: str) -> None:
    link = {"text": TEXT} | query
    open_whole_page(site, HEADS, **{f"heads_{name}": value for name, value in link.items()})


def record(name: str, text: str, layer: int) -> tuple[AttentionRecord, torch.Tensor]:
    """A layer's record and the rows of W_O by head, without the site's code."""
    model = bundled_model(name)
    ids = torch.tensor([model.tokenizer.encode(text).ids])
    with torch.inference_mode():
        result = model.core(ids, record=True).records[layer]
    weight = model.core.blocks[layer].attention.out.matrix.detach()
    return result, weight.view(result.q.shape[1], result.q.shape[-1], -1)


def components(site: AppTest) -> dict[str, Any]:
    """Data that the browser receives, by the kind of drawing.

    If two components draw the same kind, the first one wins: the page's own pictures come first.
    """
    results: dict[str, Any] = {}
    for element in site.get("bidi_component"):
        proto = element.proto
        if proto.WhichOneof("data") != "bytes":
            results.setdefault("arrangement", json.loads(proto.json))
            continue
        header, body = unpack_drawing(proto.bytes)
        kind = next(
            kind
            for mark, kind in (
                ("levels", "mosaic"),
                ("rowLabels", "map"),
                ("names", "lines"),
                ("panels", "pair"),
            )
            if mark in header
        )
        results.setdefault(kind, (header, body))
    return results


def floats(part: tuple[dict[str, Any], bytes], *shape: int) -> np.ndarray:
    return np.frombuffer(part[1], "<f4").reshape(shape)


def test_page_matches_the_tensors(site: AppTest):
    link = {"model": DECODER, "layer": "17", "head": "4", "overlay": "L3H8"}
    open_heads(site, **link, query="5", key="2")
    assert not site.exception
    assert not site.toast
    drawn_components = components(site)
    expected, out = record(DECODER, TEXT, 17)
    n = expected.weights.shape[-1]
    header, body = drawn_components["mosaic"]
    assert (header["layers"], header["heads"], len(header["labels"])) == (30, 9, n)
    codes = np.frombuffer(zlib.decompress(body), np.uint8).reshape(270, -1)
    assert codes.shape[1] == n * (n + 1) // 2  # Only visible keys are sent.
    assert drawn_components["arrangement"]["selected"] == 17 * 9 + 4
    weights = expected.weights[0, 4].numpy()
    np.testing.assert_array_equal(floats(drawn_components["map"], n, n), weights)
    lines = floats(drawn_components["lines"], 2, n, n)
    np.testing.assert_array_equal(lines[0], weights)
    np.testing.assert_array_equal(lines[1], record(DECODER, TEXT, 3)[0].weights[0, 8])
    assert drawn_components["lines"][0]["names"] == ["L17H4", "L3H8"]
    both, products, total = parse_panels(*drawn_components["pair"])
    (q, k), [product] = both.values, products.values
    np.testing.assert_array_equal(q, expected.q[0, 4, 5])
    # Query heads 3, 4 and 5 share key head 1.
    np.testing.assert_array_equal(k, expected.k[0, 1, 2])
    np.testing.assert_array_equal(product, q * k)
    assert total.values == pytest.approx(expected.scores[0, 4, 5, 2].item(), rel=1e-4)
    steps = plain_tables(site)[0]["value"].to_numpy()
    length = float((expected.v[0, 1, 2] @ out[4]).norm())
    np.testing.assert_allclose(
        steps,
        [
            float(expected.scores[0, 4, 5, 2]),
            float(expected.scores[0, 4, 5, 2]),
            float(expected.scaled_scores[0, 4, 5, 2]),
            weights[5, 2],
            length,
            weights[5, 2] * length,
        ],
        rtol=1e-4,  # A single head is a smaller matrix product, which sums in a different order.
    )


def test_every_step_of_the_open_head():
    run = runs.run(DECODER, TEXT)
    expected, _ = record(DECODER, TEXT, 6)
    close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)
    for name, tensor in (
        (stages.SCORES, expected.scores),
        (stages.MASKED, expected.masked_scores),
        (stages.SCALED, expected.scaled_scores),
        (stages.WEIGHTS, expected.weights),
    ):
        close(torch.tensor(stages.stage(run, 6, 7, name)), tensor[0, 7])
    assert np.isneginf(stages.stage(run, 6, 7, stages.MASKED)[0, 1])


def test_contributions_and_omitted_parts(site: AppTest):
    open_heads(site, measure="contributions", layer="2", head="9", renormalise="true")
    site.button_group("heads_hide").set_value(["[SEP]", "punctuation"]).run()
    assert not site.exception
    expected, out = record(ENCODER, TEXT, 2)
    labels = runs.run(ENCODER, TEXT).tokens.labels
    hidden = [i for i, label in enumerate(labels) if label in ("[SEP]", ",", ":", "!")]
    assert len(hidden) == 4
    weights = expected.weights[0, 9].numpy().copy()
    weights[:, hidden] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    lengths = (expected.v[0, 9] @ out[9]).norm(dim=-1).numpy()
    contributions = weights * lengths
    contributions[:, hidden] = np.nan
    drawn_components = components(site)
    n = len(labels)
    np.testing.assert_allclose(floats(drawn_components["map"], n, n), contributions, rtol=1e-5)
    assert drawn_components["arrangement"]["hidden"] == hidden
    assert drawn_components["mosaic"][0]["valueName"] == "contribution"


def test_order_and_captions_match_the_table(site: AppTest):
    open_heads(site, sort="Mean distance", count="6")
    table = statistics.table(runs.run(ENCODER, TEXT))
    arrangement = components(site)["arrangement"]
    assert arrangement["order"] == list(np.argsort(-table["distance"].to_numpy())[:6])
    assert arrangement["captions"][7] == f"{table['distance'][7]:.2f}"
    site.toggle("heads_rising").set_value(True).run()
    assert components(site)["arrangement"]["order"] == list(
        np.argsort(table["distance"].to_numpy())[:6]
    )
    pd.testing.assert_frame_equal(site.dataframe[0].value, table)


def test_heads_without_a_value_are_sorted_last():
    assert choices.sorted_heads(np.array([0.2, np.nan, 0.7]), rising=False) == [2, 0, 1]
    assert choices.sorted_heads(np.array([0.2, np.nan, 0.7]), rising=True) == [0, 2, 1]


def test_shared_scale_and_threshold(site: AppTest):
    open_heads(site, layer="3", head="1", scale="one for all heads", threshold="30")
    drawn_components = components(site)
    run = runs.run(ENCODER, TEXT)
    largest = float(run.weights.max())
    assert drawn_components["arrangement"]["scale"] == pytest.approx(largest)
    n = len(run.tokens)
    below = run.weights[3, 1] < np.float32(0.3 * largest)
    assert 0 < below.sum() < n * n
    np.testing.assert_array_equal(np.isnan(floats(drawn_components["map"], n, n)), below)


def test_downloads_contain_every_value():
    run = runs.run(ENCODER, TEXT)
    plain = downloads.arrays(run, MapOptions())
    np.testing.assert_array_equal(plain["weights"], run.weights)
    assert plain["weights"].dtype == np.float32
    np.testing.assert_array_equal(plain["tokens"], run.tokens.labels)
    assert "values_as_shown" not in plain
    reading = MapOptions(CONTRIBUTIONS, hidden=(0, 2))
    changed = downloads.arrays(run, reading)
    np.testing.assert_array_equal(changed["weights"], run.weights)
    np.testing.assert_array_equal(changed["values_as_shown"], values.values(run, reading))
    np.testing.assert_array_equal(changed["keys_left_out"], [0, 2])
    table = head_pairs.pairs(run, choice(2, 5))
    actual = table.set_index(["query position", "key position"])["weight"].sort_index()
    np.testing.assert_array_equal(actual.to_numpy(np.float32), run.weights[2, 5].ravel())


def test_snippet_prints_the_weight(capsys: pytest.CaptureFixture[str]):
    run = runs.run(ENCODER, 'a \'quoted\' \\ """\n{layer} été 👍🏽 \u202e\ud800')
    pair = (4, 1)
    code = downloads.snippet(run, choice(5, 11), pair)
    # ASCII only: no bidirectional control characters that could reorder the code.
    code.encode("ascii")
    exec(compile(code, "snippet", "exec"), {})
    printed = capsys.readouterr().out
    assert float(printed.strip().removeprefix("tensor(").rstrip(")")) == pytest.approx(
        float(run.weights[5, 11][pair]), abs=1e-4
    )


def choice(layer: int, head: int) -> HeadChoice:
    (entry,) = [entry for entry in available() if entry.spec.name == ENCODER]
    return HeadChoice(entry, layer, head)


def test_missing_pair_is_dropped(site: AppTest):
    open_whole_page(site, HEADS, heads_query="14", heads_key="13")
    assert not site.toast
    site.text_input("heads_text").set_value("one two three four").run()
    assert not site.exception
    run = runs.run(ENCODER, "one two three four")
    layer, head = (site.select_slider(f"heads_{name}").value for name in ("layer", "head"))
    pair = strongest_tokens(run, layer, head)
    assert (site.select_slider("heads_query").value, site.select_slider("heads_key").value) == pair
    assert components(site)["map"][0]["chosen"] == list(pair)
