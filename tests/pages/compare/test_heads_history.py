"""Compare the section on how a head formed to the stored training runs."""

import json
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.compare.heads import history, history_numbers
from pages.compare.heads.history import BEST_HEADS, HEAD, ITS_MAP, MOSAIC, STEP, TITLE
from pretrained import history as stored
from pretrained.history import History
from serving.heads import HeadId
from tests.helpers.apptest import code, messages, open_page, plain_tables
from tests.helpers.charts import drawn_charts
from tests.helpers.drawn_tensors import unpack_drawing
from ui.export import tables

pytestmark = pytest.mark.usefixtures("bundled_weights")

HEADS = "pages/compare/heads/page.py"
GPT2, BERT = "GPT-2 novels", "BERT novels"
SHORT = {"heads_text": "A cat sat", "heads_part": TITLE}


def load_history(name: str) -> History:
    result = stored.history(name)
    assert result is not None
    return result


def drawings(site: AppTest) -> dict[str, Any]:
    """The mosaic (header, values of all heads), its arrangement and the large map."""
    results: dict[str, Any] = {}
    for element in site.get("bidi_component"):
        proto = element.proto
        if proto.WhichOneof("data") != "bytes":
            arrangement = json.loads(proto.json)
            if arrangement["mosaic"] == MOSAIC:
                results["arrangement"] = arrangement
            continue
        header, body = unpack_drawing(proto.bytes)
        if header.get("name") == MOSAIC:
            codes = np.frombuffer(zlib.decompress(body), np.uint8).astype(np.float32)
            largest = np.array(header["largest"], np.float32)[:, None]
            results["mosaic"] = header, largest * (codes.reshape(len(largest), -1) / 255) ** 2
        elif "step" in header.get("title", ""):
            values = np.frombuffer(body, "<f4")
            results["map"] = header, values.reshape(header["rows"], header["columns"])
    return results


def mosaic_layout(weights: np.ndarray, *, causal: bool) -> np.ndarray:
    """The weights of all heads (L, H, T, T) in the mosaic's layout: (L * H, cells)."""
    t = weights.shape[-1]
    cells = weights.reshape(-1, t * t)
    return cells[:, np.tril(np.ones((t, t), bool)).ravel()] if causal else cells


def test_section_opens_at_the_end_of_gpt2_training(site: AppTest):
    open_page(site, HEADS, **SHORT)
    assert not site.exception
    assert not messages(site)
    gpt2 = load_history("gpt2-novels")
    header, values = drawings(site)["mosaic"]
    assert header["title"].startswith(f"{GPT2}, step {gpt2.steps[-1]:,}: ")
    assert header["about"]["name"] == "gpt2-novels"
    np.testing.assert_allclose(
        values, mosaic_layout(gpt2.probes[0].weights(-1), causal=True), atol=1e-6
    )
    # The page's other downloads name their own model and sentence.
    (main,) = [
        unpack_drawing(e.proto.bytes)[0]
        for e in site.get("bidi_component")
        if e.proto.WhichOneof("data") == "bytes" and b'"heads_mosaic"' in e.proto.bytes
    ]
    assert main["about"]["sentence"] == "A cat sat"


def test_all_controls(site: AppTest):
    bert = load_history("bert-novels")
    open_page(site, HEADS, **SHORT)
    site.select_slider(STEP).set_value(int(load_history("gpt2-novels").steps[0])).run()
    site.button_group("heads_history_model").set_value(BERT).run()
    assert site.select_slider(STEP).value == bert.steps[0]  # The slider stays at its end.
    site.selectbox("heads_history_text").set_value(bert.probes[2].title).run()
    site.select_slider(STEP).set_value(int(bert.steps[1])).run()
    site.selectbox(HEAD).set_value("L3H5").run()
    site.button_group("heads_history_beside").set_value(ITS_MAP).run()
    assert not site.exception
    assert not site.toast
    drawing, weights = drawings(site), bert.probes[2].weights(1)
    np.testing.assert_allclose(
        drawing["mosaic"][1], mosaic_layout(weights, causal=False), atol=1e-6
    )
    assert drawing["arrangement"]["selected"] == 3 * 8 + 5
    header, values = drawing["map"]
    np.testing.assert_array_equal(values, weights[3, 5])
    assert header["labels"] == list(bert.probes[2].labels)
    assert header["title"] == f"{BERT}, L3H5, step {bert.steps[1]:,}"
    assert bert.probes[2].text.strip() in code(site)
    # The view's link restores all of it.
    [link] = [text for text in code(site) if "heads_history_head=L3H5" in text]
    query = dict(part.split("=") for part in link.partition("?")[2].split("&"))
    assert query["heads_history_step"] == str(bert.steps[1])
    assert query["heads_history_model"] == "BERT+novels"
    table = plain_tables(site)[0]
    assert table["step"].tolist() == bert.steps.tolist()
    assert table["tokens read"].tolist() == bert.tokens.tolist()
    np.testing.assert_allclose(
        table["L3H5 previous token"], bert.probes[2].scores[:, 0, 3, 5], atol=6e-5
    )
    np.testing.assert_allclose(table["L3H5 induction"], bert.repeated_scores[:, 0, 3, 5], atol=6e-5)
    assert "loss after 40" not in table


def test_lines_match_the_scores(site: AppTest):
    gpt2 = load_history("gpt2-novels")
    open_page(site, HEADS, **SHORT, heads_history_head="L2H4", heads_history_step="0")
    scores, losses = drawn_charts(site)
    rows = scores.rows
    one = rows[rows["score"] == "Previous token"]
    np.testing.assert_allclose(one["value"], gpt2.probes[0].scores[:, 0, 2, 4], rtol=1e-6)
    assert set(rows["head"]) == {"L2H4"}
    assert "Next token" not in set(rows["score"])  # A decoder can't attend to the next token.
    assert scores.layers[0]["step"].tolist() == [0]  # The rule marks the selected step.
    rows = losses.rows
    after = rows[rows["loss of"] == "after 40 tokens"].set_index("step")["loss"]
    expected = gpt2.losses["after_40"]
    np.testing.assert_allclose(after, expected[~np.isnan(expected)])
    site.button_group("heads_history_beside").set_value(BEST_HEADS).run()
    rows = drawn_charts(site)[0].rows
    best = rows[rows["score"] == "Induction"]["value"]
    np.testing.assert_allclose(best, gpt2.repeated_scores[:, 0].reshape(len(gpt2.steps), -1).max(1))


def test_section_is_hidden_without_the_files(site: AppTest, monkeypatch, tmp_path):
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    open_page(site, HEADS, **SHORT)
    assert not site.exception
    assert TITLE not in site.button_group("heads_part").options
    assert "mosaic" not in drawings(site)


def test_damaged_file_shows_message(site: AppTest, monkeypatch, tmp_path):
    (tmp_path / "gpt2-novels").mkdir()
    (tmp_path / "gpt2-novels" / stored.FILE).write_bytes(b"no archive")
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    stored.history.cache_clear()
    open_page(site, HEADS, **SHORT)
    stored.history.cache_clear()
    assert not site.exception
    assert any("history.npz of gpt2-novels" in message for message in messages(site))


def synthetic_history(**scores: dict[tuple[int, int, int], float]) -> History:
    """GPT-2's history with these scores (step, layer, head) and 0 elsewhere."""
    real = load_history("gpt2-novels")
    values_by_step, repeated = (
        np.zeros_like(real.probes[0].scores),
        np.zeros_like(real.repeated_scores),
    )
    values_by_step[:, 1] = np.nan
    for name, values in scores.items():
        array = repeated[:, 0] if name == "induction" else values_by_step[:, 0]
        for index, value in values.items():
            array[index] = value
    return replace(
        real, probes=(replace(real.probes[0], scores=values_by_step),), repeated_scores=repeated
    )


def test_text_follows_the_scores():
    result = synthetic_history(previous={(1, 2, 3): 0.35, (1, 4, 0): 0.31, (3, 5, 1): 0.9})
    message = history_numbers.notice(result, 0)
    first, most = (f"{result.steps[number]:,}" for number in (1, 3))
    assert f"**L2H3** at step {first} (35%)" in message
    assert f"**L5H1** at step {most} (90%)" in message
    weak = history_numbers.notice(synthetic_history(induction={(2, 1, 7): 0.3}), 0)
    assert f"**L1H7** at step {result.steps[2]:,} (30%)" in weak


def test_text_about_in_context_learning():
    real = load_history("gpt2-novels")
    few = np.full(len(real.steps), 5, np.float32)
    many = np.where(np.arange(len(few)) < 2, np.nan, np.float32(4.5)).astype(np.float32)
    for after_200, message in (
        (many, f"begins at step {real.steps[2]:,}"),
        (few, "doesn't begin"),
        (few * np.nan, "hasn't reached"),
    ):
        losses = dict(real.losses) | {"after_40": few, "after_200": after_200}
        assert message in history_numbers.notice(replace(real, losses=losses), 0)
    assert "isn't split" in history_numbers.notice(load_history("bert-novels"), 0)


def test_downloads():
    gpt2 = load_history("gpt2-novels")
    arrays = history.arrays(gpt2, 1)
    np.testing.assert_array_equal(arrays["weights"][-1], gpt2.probes[1].weights(-1))
    assert arrays["weights"].shape[0] == len(arrays["steps"]) == len(gpt2.steps)
    np.testing.assert_array_equal(arrays["score_previous"], gpt2.probes[1].scores[:, 0])
    assert "score_next" not in arrays
    table = history_numbers.table(gpt2, 1, HeadId(0, 2))
    assert tables.csv(table).decode().splitlines()[0].startswith("step,tokens read,L0H2 previous")
