"""Compare the What is recomputed page to tensors computed without the page's code."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import pretrained
from attention_core import generate
from attention_core.costs.formulas import forward_flops
from pages.kv_cache.what_is_recomputed import charts, counts, downloads, pictures, run
from serving.limits import OverLimit
from tests.helpers import drawn_tensors
from tests.helpers.apptest import messages, open_whole_page, plain_tables
from tests.helpers.bundled_models import ENCODER, FIRST_GPT2, bundled_model

PAGE = "pages/kv_cache/what_is_recomputed/page.py"
PROMPT = "Two cats sat."
N_NEW, STEP, LAYER, HEAD, COLUMN = 3, 3, 4, 5, 2
LINK = {
    "what_is_recomputed_prompt": PROMPT,
    "what_is_recomputed_tokens": str(N_NEW),
    "what_is_recomputed_step": str(STEP),
    "what_is_recomputed_layer": str(LAYER),
    "what_is_recomputed_head": str(HEAD),
    "what_is_recomputed_column": str(COLUMN),
    "what_is_recomputed_scope": counts.MODEL,
}
NAMES = ["queries", "keys", "values", "scores", "weights", "context"]


@pytest.fixture(scope="module")
def expected() -> tuple[list[int], int, Any, Any]:
    """All ids, the prompt length and the outputs of the last two steps."""
    model = bundled_model(FIRST_GPT2)
    prompt = list(model.tokenizer.encode(PROMPT).ids)
    ids = prompt + generate(model.core, prompt, max_new_tokens=N_NEW)
    with torch.inference_mode():
        now, before = (
            model.core(torch.tensor([ids[: len(ids) - back]]), record=True) for back in (1, 2)
        )
    return ids, len(prompt), now, before


def head_of(output: Any) -> dict[str, np.ndarray]:
    """The six matrices of the head in the link."""
    record = output.records[LAYER]
    parts = [record.q[0, HEAD], record.k[0, HEAD], record.v[0, HEAD], record.scores[0, HEAD],
             record.weights[0, HEAD], record.context[0, HEAD]]  # fmt: skip
    return {name: part.numpy() for name, part in zip(NAMES, parts, strict=True)}


def panels(site: AppTest, which: int) -> list[tuple[dict[str, Any], np.ndarray]]:
    """Each panel of a picture and its values that aren't masked."""
    results = []
    for tensor in drawn_tensors.pictures(site)[which]:
        n_rows, n_columns = tensor.panel["there"] or tensor.panel["shape"]
        results.append((tensor.panel, tensor.values[:n_rows, :n_columns]))
    return results


def test_link_restores_the_step(site: AppTest, expected):
    ids, n_prompt, now, before = expected
    open_whole_page(site, PAGE, **LINK)
    assert not site.exception
    assert not site.toast
    n = n_prompt + STEP - 1
    window = slice(COLUMN, COLUMN + 6)
    matrices, old = head_of(now), head_of(before)
    for (panel, values), (name, matrix) in zip(panels(site, 0), matrices.items(), strict=True):
        square = name in ("scores", "weights")
        assert panel["name"] == name
        assert panel["box"] == [n - 1, n - 1 if square else 6]
        visible = matrix if square else matrix[:, window]
        np.testing.assert_allclose(values, visible, atol=1e-4, rtol=1e-5)
        change = float(np.abs(matrix[: n - 1, : old[name].shape[1]] - old[name]).max())
        message = panel["note"].split("Largest difference: ")[1].split(". ")[0].rstrip(".")
        assert (0.0 if message == "exactly 0" else float(message)) == pytest.approx(
            change, abs=2e-5
        )
    logits = now.logits[0]
    ((panel, values),) = panels(site, 1)
    top = logits[-1].topk(8).indices
    np.testing.assert_allclose(values, logits[:, top], atol=1e-3)
    assert panel["box"] == [n - 1, 8]
    way = [values for _, values in panels(site, 2)]
    shapes = [(1, 8), (1, 6), (1, n), (1, n), (1, 6), (n, 6), (n, 6)]
    assert [values.shape for values in way] == shapes
    for values, name in zip(way[1:5], ("context", "weights", "scores", "queries"), strict=True):
        row = matrices[name][-1:]
        expected_row = row if name in ("scores", "weights") else row[:, window]
        np.testing.assert_allclose(values, expected_row, atol=1e-3)
    predictions = next(d for d in plain_tables(site) if "predicts" in d)
    np.testing.assert_allclose(predictions["probability"], logits.softmax(-1).amax(-1), atol=1e-4)
    assert list(predictions["used"]) == ["no"] * (n - 1) + ["yes"]
    right = int((logits.argmax(-1)[:-1] == torch.tensor(ids[1:n])).sum())
    assert any(f"{right} of {n - 1} right" in element.value for element in site.text)


def test_counts_match_the_model(site: AppTest, expected):
    _, n_prompt, _, _ = expected
    open_whole_page(site, PAGE, **LINK)
    config, n = bundled_model(FIRST_GPT2).core.config, n_prompt + STEP - 1
    total = next(d for d in plain_tables(site) if "repeated" in d).iloc[-1]
    assert 2 * total["multiplications"] == forward_flops(config, n, n, n_logits=n)
    assert 2 * total["with the cache"] == forward_flops(config, 1, n)
    assert any(
        f"**{total['repeated']:,} of {total['entries']:,} entries**" in m.value
        for m in site.markdown
    )
    rows = next(d for d in plain_tables(site) if "total rows, cache" in d)
    assert list(rows["total rows, no cache"]) == list(
        np.cumsum([n_prompt + i for i in range(N_NEW)])
    )
    assert list(rows["total rows, cache"]) == [n_prompt + i for i in range(N_NEW)]
    reads = next(d for d in plain_tables(site) if "query read later" in d)
    # The number of steps after the one that first processed each token.
    later = [STEP - 1] * n_prompt + [1, 0]
    assert not reads["query read later"].any()
    assert list(reads["key read later"]) == list(reads["value read later"]) == later
    overwritten = next(d for d in plain_tables(site) if "overwritten rows" in d)
    message = list(overwritten["last context row"])
    assert message[:2] == ["unchanged in every bit"] * 2
    assert all(text.startswith("off by") for text in (message[2], message[4]))
    assert message[3] == message[5] == "also not a number"

    # The first step has no previous step to compare with.
    site.slider("what_is_recomputed_step").set_value(1).run()
    assert not site.exception
    assert all(panel["box"][0] == 0 for panel, _ in panels(site, 0))


def test_encoder_row_changes_match_two_passes(expected):
    ids, _, _, _ = expected
    growth = run.growth(run.GrowthSettings(FIRST_GPT2, PROMPT, N_NEW))
    assert growth.ids == tuple(ids)
    result = counts.contrast(growth)
    encoder, text = bundled_model(ENCODER), bundled_model(FIRST_GPT2).tokenizer.decode(ids[:-1])
    all_ids = list(encoder.tokenizer.encode(text).ids)
    shorter = all_ids[:-2] + all_ids[-1:]
    with torch.inference_mode():
        long, short = (
            encoder.core(torch.tensor([one]), record=True).records for one in (all_ids, shorter)
        )
    rows, layer = len(all_ids) - 2, 2
    old, new = (torch.cat((r[layer].k, r[layer].v))[:, :, :rows] for r in (short, long))
    change, largest = (new - old).abs().max(), old.abs().max()
    assert result.encoder[layer] == pytest.approx(float(change / largest), rel=1e-4)
    assert result.encoder[1:].min() > 1e-3
    assert result.decoder.max() < 1e-5
    # The encoder has more layers than the decoder.
    deeper = dataclasses.replace(result, decoder=result.decoder[:2])
    chart = charts.contrast_chart(counts.contrast_table(growth, deeper)).to_dict()
    assert chart["encoding"]["x"]["scale"]["domain"] == [-0.5, len(result.encoder) - 0.5]
    nothing = dataclasses.replace(growth, ids=(198, 198, 198))  # Only line breaks.
    result = counts.contrast(nothing)
    assert result.n_old == len(result.encoder) == 0
    assert set(counts.contrast_table(nothing, result)["model"]) == {growth.title}


def test_downloads_and_snippet_match_the_page(expected, monkeypatch: pytest.MonkeyPatch):
    ids, n_prompt, now, _ = expected
    growth = run.growth(run.GrowthSettings(FIRST_GPT2, PROMPT, N_NEW))
    look = pictures.StepView(growth, STEP - 1, LAYER, HEAD, COLUMN)
    stored = downloads.arrays(look)
    assert list(stored["token_ids"]) == ids[:-1]
    for name, matrix in head_of(now).items():
        np.testing.assert_allclose(stored[name], matrix, atol=1e-4, rtol=1e-5)
    assert stored["cached_queries"].shape == (1, 32)
    assert stored["before_scores"].shape == (n_prompt + 1, n_prompt + 1)
    rows = counts.step_table(look, counts.HEAD)
    assert list(rows["matrix"]) == [*NAMES, "sum"]
    names: dict[str, Any] = {}
    with monkeypatch.context() as patch:  # Use the model that is already loaded.
        patch.setattr(pretrained, "load", lambda name, device: bundled_model(name))
        exec(downloads.snippet(look), names)
    np.testing.assert_allclose(names["new"]["queries"], stored["queries"], atol=1e-4)


def test_invalid_and_hostile_prompts(site: AppTest):
    hostile, prefix = "<img/>![x](y)\u202e", "what_is_recomputed"
    # If the link selects nothing to count, the page counts one head.
    link = {f"{prefix}_prompt": hostile, f"{prefix}_tokens": "2", f"{prefix}_scope": ""}
    open_whole_page(site, PAGE, **link)
    assert not site.exception
    assert not messages(site)
    assert site.toast
    assert any(m.value.startswith(f"For {counts.HEAD}, ") for m in site.markdown)
    assert not any("<img" in m.value or "![x]" in m.value for m in site.markdown)
    for prompt, message in (("", "type a word"), ("a " * 40, "over the limit of 16")):
        site.text_input(f"{prefix}_prompt").set_value(prompt)
        site.button(f"{prefix}_go").click().run()
        assert not site.exception
        assert any(message in m for m in messages(site))
        assert site.text_input(f"{prefix}_prompt").value == prompt


def test_run_is_limited_and_can_be_stopped(site: AppTest, monkeypatch: pytest.MonkeyPatch):
    settings = run.GrowthSettings(FIRST_GPT2, PROMPT, 2)
    run.growth.clear()
    with pytest.raises(OverLimit, match="not 9"):
        run.growth(run.GrowthSettings(FIRST_GPT2, PROMPT, 9))

    def abandon(_: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run.growth(settings, abandon)
    monkeypatch.setattr(run, "MAX_GROWN_BYTES", 20_000)
    with pytest.raises(OverLimit, match="limit of 0"):
        run.growth(settings)
    site.session_state["what_is_recomputed_stopped"] = settings
    open_whole_page(site, PAGE, what_is_recomputed_prompt=PROMPT, what_is_recomputed_tokens="2")
    assert not site.exception
    assert not site.get("bidi_component")
    monkeypatch.undo()
    site.button("what_is_recomputed_go").click().run()
    assert not messages(site)
    assert panels(site, 0)[0][1].shape[0] == run.growth(settings).n_rows


def test_small_model_with_a_full_context(
    site: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Use one layer, one head of 4 columns, and a context that ends the text early."""
    import transformers

    config = transformers.GPT2Config(vocab_size=50257, n_positions=4, n_embd=4, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "short")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    small = {"what_is_recomputed_model": "short", "what_is_recomputed_tokens": "8"}
    open_whole_page(site, PAGE, what_is_recomputed_prompt="it saw it", **small)
    assert not site.exception
    assert not messages(site)
    assert site.session_state["what_is_recomputed_model"] == "short"
    growth = run.growth(run.GrowthSettings("short", "it saw it", 8))
    assert [step.n_tokens for step in growth.steps] == [3, 4]
    assert panels(site, 0)[0][1].shape == (4, 4)
    site.text_input("what_is_recomputed_prompt").set_value("it saw it and it").run()
    assert any("limit of 3" in m for m in messages(site))
